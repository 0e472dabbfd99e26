// Package joining contains how nodes talk before they are members of one cluster.
//
//	meet.go  nodes that were started with one list agree who bootstraps
//	join.go  a node asks to become a member, and the leader's answer
//
// It works on the peer port and stores nothing: Raft's configuration defines the members,
// and package cluster changes it when it admits a node. Invariants:
//
//   - A node that was admitted twice is one member, identified by its UUID.
//   - Nodes bootstrap only if all nodes of one list are empty and agree.
//   - A node whose folder may be the wiped one of a member does not take part.
package joining
