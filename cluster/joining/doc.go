// Package joining is what nodes say to each other before they are members of one cluster.
//
//	meet.go  nodes that were started with one list agree who bootstraps
//	join.go  a node asks to become a member, and what the leader answers
//
// It asks and answers on the peer port, and keeps nothing: who is a member is Raft's
// configuration, which package cluster changes when it admits a node. What always holds:
//
//   - A node that was admitted twice is one member: its UUID says that it is the same.
//   - Nodes bootstrap only if all of one list are empty and agree.
//   - A node whose folder may be a wiped one of a member does not take part.
package joining
