// Package table holds the records of the state by their ids, in pages: tasks, claim
// requests and removed tasks are each one Table.
//
// It owns how records lie in memory: which page they are on, which of them rest as
// bytes, and what a captured View still sees. What a record is, when it changes and
// what its bytes mean is package fsm's: that alone has tables, and gives this one a
// Packing. A table tells nobody of a change but its Journal.
//
// What holds: no page is empty; a live view never changes; what a table yields comes
// in the order of the ids. As in all of the state machine nothing here depends on a
// clock, on chance or on the order of a map.
package table
