// Package peer is the one port for all that nodes say to each other: Raft's messages,
// requests of the API that are passed on to the leader, calls from node to node. It knows
// nothing of tasks, and of its own node only what [Config] answers: who this node is, who
// is a member, whose Raft messages are taken. Package cluster opens one [Port], says with
// [Port.Handle] what answers the calls, and gives [Port.StreamLayer] to Raft. Nothing else
// listens to other nodes or dials them.
//
//	handshake.go, joinkeys.go   who is on the other side, and whether it belongs here
//	tls.go, uncovered.go        TLS below that, and certificates that are no longer good
//	port.go, conn.go            connections: accepted, dialed, counted, closed
//	calls.go, http.go, pool.go  calls, and requests passed on, one at a time on a connection
//	stream.go ...               requests that the leader may hold: all on one connection
//	raft.go                     Raft's connections
//	whereabouts.go              where members are that have moved
//
// What always holds:
//
//   - Nothing is handed on, and the node is asked nothing, before the other side has
//     proven its identity and, if there is one, the join key.
//   - A connection names whom it wants, and reaches that node or none. Only the calls of
//     isOpenCall are made of whoever is there, or answered to who is no member.
//   - A membership that ends ends what its connections may do: it is asked again for each
//     request, and of Raft's connections every 100 ms.
//   - Nothing is sent twice. A request of which a byte may have left has
//     nodes.ErrOutcomeUnknown for its error, any other one was not made.
//   - Handshakes, connections, streams, and what is read of each have bounds, and every
//     wait ends with the port.
package peer
