// Package table stores the records of the state by id, in pages. Tasks, claim requests and
// removed tasks are each one Table.
//
// It owns the layout in memory: which page a record is on, which records are packed into
// bytes, and what a captured View still sees. Only package fsm uses tables; it knows what a
// record is and when it changes, and provides the Packing. A table reports changes only to
// its Journal.
//
// No page is empty, a live view never changes, and records are yielded in the order of
// their ids. As everywhere in the state machine, nothing depends on a clock, on chance or
// on map order.
package table
