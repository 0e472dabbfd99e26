// Package wire writes and reads messages in protobuf wire format, in a canonical form:
// one value has one encoding. Commands in the log and records in snapshots are such
// messages.
//
// It owns how fields lie in bytes, and nothing of what they mean: the messages
// are package fsm's, as fsm.proto describes them.
//
// What holds: fields come in ascending order; a scalar at its zero value, an empty
// string and a message without fields are not written unless they are elements of a
// list; a varint takes as few bytes as it can. What reads refuses everything else, so what
// was decoded encodes to the bytes that it came from. What is read shares no memory
// with the message but where it says so.
package wire
