// Package trail keeps the events that were told: in order, as bytes in chunks, as long as
// the bounds let it.
//
// It owns how an event lies in bytes, which events are kept, where each task's newest one
// is, and the records of the trail in snapshots. What is told when, at which place and
// time, is package fsm's, which alone has a Log; what an event is, package event says.
//
// What holds: bytes are only ever added to a chunk, so that a View shares them; only Cut,
// which undoes, takes some off again. The places of events rise, and their times never fall. Each event leads
// to the one before of its task, and Index makes of the chunks alone what is derived.
// As in all of the state machine nothing here depends on a clock, on chance or on the
// order of a map.
package trail
