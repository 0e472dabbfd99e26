// Package event defines the events of the trail: their kinds and names, their places, and
// queries for them.
//
// It owns the numbers of the kinds, which are in snapshots, and their names, which are part
// of the API. Package fsm decides what is recorded, and package fsm/trail stores it.
//
// Numbers and names are never reused for another kind, and a place has at most one event.
package event
