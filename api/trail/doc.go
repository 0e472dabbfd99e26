// Package trail reads a node's trail and shows it: places of events, events as JSON, packets of them for streams,
// and the feed that reads the end of the trail once for all streams. It reads the trail through a
// Source and changes nothing. A finished Packet never changes, so that all streams can share it.
//
// An Audit writes the node's audit file: each event as one line of JSON, in order and exactly once, even after crashes
// and when the file is moved away, and the requests with known keys that the node has denied. Only one process at a
// time can use the file.
package trail
