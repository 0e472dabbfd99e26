// Package event defines and stores the events of the trail: their kinds, names and places,
// the Log that keeps them, encoded in chunks and within the bounds that are set, and queries.
//
// It owns the numbers of the kinds, which are in snapshots, their names, which are part of the
// API, the encoding of events, which of them are kept, the index of each task's newest event,
// and the trail's records in snapshots. Package fsm, the only user of Log, decides what is
// recorded, with which place and time. Other packages use the events and their kinds.
//
// Numbers and names are never reused for another kind. Bytes are only appended to a chunk, so
// that a View can share them; only Cut, which undoes, removes some. Places of events rise, no
// two events have the same, and their times never fall. Each event links to the previous one
// of its task, and Index recomputes all derived data from the chunks. As everywhere in the
// state machine, nothing depends on a clock, on chance or on map order.
package event
