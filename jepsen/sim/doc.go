// Package sim is a deterministic simulator of a whole cluster: one goroutine, one seed, and
// only simulated time. It drives the real state machine with real encoded entries, the real
// lease clocks and timers of a leader, and the client's real decisions about repeating,
// over a model of the log: a slice of entries of which a prefix is committed.
//
// A seed decides everything: what the clients do, how long each message and each entry
// takes, what is lost, duplicated or late, when leaders change, pause or do not know that
// they were deposed, how clocks run and jump, and from which snapshot a leader's state is
// built. The same seed gives the same run, bit for bit.
//
// It checks that every result of every entry and every state, including the trail, is the
// same in every copy, and that leases and other times end in time, in real time. The model
// in package fsm's tests checks what the results must be; it gets the logs of runs. A
// failing run is shrunk to the few necessary steps.
//
// It has no real Raft, no disk, and no HTTP. Package cluster's tests and the runs with real
// processes cover those.
//
//	report := sim.Run(sim.Config{Seed: 1, Steps: 300})
package sim
