// Package trail stores events in order, encoded in chunks, within the bounds that are set.
//
// It owns the encoding of events, which of them are kept, the index of each task's newest event, and the
// trail's records in snapshots. Package fsm, the only user of Log, decides what is recorded, with which place
// and time; package event defines the events.
//
// Bytes are only appended to a chunk, so that a View can share them; only Cut, which undoes, removes some.
// Places of events rise and their times never fall. Each event links to the previous one of its task, and
// Index recomputes all derived data from the chunks. As everywhere in the state machine, nothing depends on a
// clock, on chance or on map order.
package trail
