// Package sim is a deterministic simulator of a whole cluster: one goroutine,
// one seed, no clock but its own. It drives the real state machine with real
// encoded entries, the real lease clocks and timers of a leader, and the
// client's real decisions about repeating, over a model of the log: a slice of
// entries of which a prefix is committed.
//
// A seed decides everything: what the clients do, how long each message and
// each entry takes, what is lost, doubled or late, when leaders change, pause or
// do not know that they were deposed, how clocks run and jump, which leader's state is
// built from which snapshot. The same seed gives the same run, bit for bit.
//
// Every result of every entry and every state, the trail in it, is the same in every
// copy, and what ends by a clock ends in time, in real time. What
// the results must be is the business of the model in package fsm's tests, which get the
// logs of runs. A run that fails is shrunk to the few steps that it takes.
//
// What it does not do: no real Raft, no disk, no HTTP. Those are the business
// of package cluster's tests and of the runs with real processes.
//
//	report := sim.Run(sim.Config{Seed: 1, Steps: 300})
package sim
