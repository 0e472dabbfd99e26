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
// What a node keeps on disk is the affair of package cluster/storage: this one says
// when.
package cluster
