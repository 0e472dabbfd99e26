// Package record defines the records of the state in package fsm: tasks, claim requests,
// removed tasks, task types with settings, nodes, join tokens, schedules and the header.
//
// It owns the one canonical encoding in which records are saved, hashed and kept packed
// (messages of fsm.proto), the tables that keep them by id, and the estimate of a record's
// memory. Encoding and estimate depend on the saved fields alone, so they are the same on all
// nodes; changing either requires a new feature level.
//
// wire.go and message.go read and write messages in protobuf wire format, in a canonical
// form: a value has exactly one encoding. Fields are in ascending order. Scalars with the zero
// value, empty strings and messages without fields are not written, except as elements of
// lists. Varints are as short as possible. Reading refuses everything else, so that whatever
// was decoded encodes to the same bytes again. Values that were read share no memory with the
// message, unless documented. Commands are such messages, too.
//
// table.go and packed.go keep tasks, claim requests and removed tasks in pages, one Table
// each. No page is empty, a live View never changes, and records are yielded in the order of
// their ids. A table reports changes only to its Journal.
//
// A record knows only itself: none knows its table, an index or a clock, and the result of a
// method depends only on its record and its arguments. Copies of a task share plans, options,
// finalizations, byte slices and attempts logs, so these are never changed in place.
//
// Only package fsm uses it; other packages use the names in fsm/names.go.
package record
