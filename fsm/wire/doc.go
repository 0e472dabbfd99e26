// Package wire reads and writes messages in protobuf wire format, in a canonical form: a
// value has exactly one encoding. Commands in the log and records in snapshots are such
// messages.
//
// It knows the encoding of fields but not their meaning: the messages belong to package
// fsm, as fsm.proto describes them.
//
// Fields are in ascending order. Scalars with the zero value, empty strings and messages
// without fields are not written, except as elements of lists. Varints are as short as
// possible. Reading refuses everything else, so that whatever was decoded encodes to the
// same bytes again. Values that were read share no memory with the message, unless
// documented.
package wire
