// Package record defines the records of the state in package fsm: tasks, claim requests,
// removed tasks, task types with settings, nodes, join tokens, schedules and the header.
//
// It owns the one canonical encoding in which records are saved, hashed and kept packed
// (messages of fsm.proto), and the estimate of a record's memory. Both depend on the saved
// fields alone, so they are the same on all nodes; changing either requires a new feature
// level.
//
// A record knows only itself: nothing here uses a table, an index or a clock, and the
// result of a method depends only on its record and its arguments. Copies of a task share
// plans, options, finalizations, byte slices and attempts logs, so these are never changed
// in place.
//
// Only package fsm uses it; other packages use the names in fsm/names.go.
package record
