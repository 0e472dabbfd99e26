// Package record holds what the state of package fsm is made of: tasks, claim requests,
// removed tasks, task types with settings, nodes, join tokens, schedules and the header,
// and the bytes of each.
//
// It owns the one canonical form in which a record is saved, hashed and kept at rest
// (messages of fsm.proto), and the estimate of what a record takes in memory. Both
// depend on the saved fields alone, so they are the same on all nodes: another form or
// another estimate is a matter of the feature level.
//
// A record knows itself and no other: nothing here looks at a table, an index or a
// clock. What a method says of a record follows from its own fields and its arguments.
// Plans, options, finalizations, byte slices and logs of attempts are shared by copies
// of a task, so they are never changed in place.
//
// Package fsm alone uses it, and gives its names to all others.
package record
