// Package trail reads a node's trail and shows it: places of events, events as JSON, packets of them for streams,
// compressed or not, and the feed that reads the end of the trail once for all streams. It reads the trail through a
// Source and changes nothing. A finished Packet never changes, so that all streams can share it.
package trail
