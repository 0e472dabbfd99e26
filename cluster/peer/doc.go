// Package peer implements the one port for all communication between nodes: Raft's
// messages, API requests forwarded to the leader, and calls between nodes. It knows nothing
// of tasks, and of its node only what [Config] answers: its identity, the members, and
// whose Raft messages are accepted. Package cluster opens one [Port], registers handlers
// with [Port.Handle], and gives [Port.StreamLayer] to Raft. Nothing else listens to other
// nodes or dials them.
//
//	handshake.go, joinkeys.go   the identity of the other side, and whether it belongs here
//	tls.go, uncovered.go        TLS below that, and certificates that are no longer valid
//	port.go, conn.go            connections: accepted, dialed, counted, closed
//	calls.go, pool.go           calls, one at a time on a connection
//	stream.go ...               clients' requests that are passed on, all on one connection
//	raft.go                     Raft's connections
//	whereabouts.go              the addresses of members that have moved
//
// Invariants:
//
//   - Nothing is handed on, and the node is asked nothing, before the other side has proven its identity and, if there is one, the join key.
//   - A connection names its target and reaches that node or none. Only the calls of isOpenCall may go to any node, or come from nodes that are not members.
//   - The end of a membership ends the rights of its connections: it is checked for each request, and every 100 ms for Raft's connections.
//   - Nothing is sent twice. A request fails with nodes.ErrOutcomeUnknown if a byte of it may have left; with any other error it was not made.
//   - Handshakes, connections, streams and everything read from them are bounded, and every wait ends with the port.
package peer
