// Package cluster is one node: its data folder and stores, the peer port,
// proposing and reading through Raft, the leader's duties, membership and
// snapshots.
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
// Storage, from the bottom up. A data folder belongs to one node of one cluster
// and to one process at a time ([ErrDataDirInUse]). It holds
//
//	LOCK           locked while a process uses the folder; holds its pid
//	identity.json  who the node is, written before anything else
//	raft.db        the Raft log, Raft's term and vote: a bbolt file
//	raft.tail      how far the log has to reach at least
//	snapshots/     the newest two snapshots
//
// A node that finds one of them damaged does not start: it has to join again as
// a new member. What was acknowledged is on a majority of the others' disks, and
// a node that had lost a part of it, or its vote, could lead a majority that
// never saw it.
package cluster
