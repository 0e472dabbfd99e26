// Package cluster is one node: the peer port, proposing and reading through Raft,
// the leader's duties, membership and snapshots.
//
// It does not decide anything about tasks: package fsm does, on every node
// alike. It does not speak HTTP to users: package api does.
//
// Everything that a leader does belongs to one leadership and ends with it: the
// lease timers, ticks and evictions when they are due, and the claims that wait
// for tasks, which [Node.Claim] parks in order of arrival and proposes when there
// is something for them. Commands of a feature level that the cluster has not
// reached are refused; [Node.Upgrade] raises it.
//
// Its rooms know no node; this package makes them and tells them what they need:
//
//	batch     commands on their way into the log, and claims that wait
//	clocks    the machine's clocks, and what the members' wall clocks show
//	confirm   between Raft and its transport: reads confirmed, heartbeats, votes held back
//	duty      what a leader does because the state has something due
//	joining   what nodes say before they are members of one cluster
//	lease     when a lease has run out
//	nodekey   a node's key, of which its UUID is
//	peer      the port at which nodes talk to each other
//	replica   this node's copy of the state
//	space     what is left of memory and disk
//	storage   what a node keeps on disk
package cluster
