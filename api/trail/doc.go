// Package trail owns how a node's trail is read and shown: places of events, events as
// JSON, packets of them for streams, compressed or not, and the feed that reads the end of
// the trail once for all streams. It reads the trail through a Source and changes nothing.
// A Packet is never changed once it is whole, so all streams share it.
package trail
