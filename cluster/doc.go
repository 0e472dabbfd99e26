// Package cluster implements a node: the peer port, proposing and reading through Raft, the
// leader's duties, membership and snapshots.
//
// It does not decide anything about tasks, which package fsm does in the same way on every
// node, and it does not speak HTTP to users, which package api does.
//
// Everything a leader does belongs to one leadership and ends with it: lease timers, due
// ticks and evictions, and waiting claims, which [Node.Claim] parks in order of arrival and
// proposes when there is something for them. Commands of a feature level that the cluster
// has not reached are refused; [Node.Upgrade] raises it.
//
// Its subpackages know no node; this package creates them and tells them what they need:
//
//	batch     commands on their way into the log, and waiting claims
//	clocks    the machine's clocks, and the members' wall clocks
//	confirm   between Raft and its transport: confirmed reads, heartbeats, held votes
//	joining   how nodes meet before they are members of a cluster
//	lease     when a lease has run out
//	nodekey   a node's key, from which its UUID is derived
//	peer      the port at which nodes talk to each other
//	replica   this node's copy of the state, and the memory and disk that it leaves
//	storage   what a node keeps on disk
package cluster
