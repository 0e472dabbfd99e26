// Package memnode provides a node for package api in memory: a real state machine and what a leader does about time,
// without Raft, disks and a network. Package client/clienttest serves it to the tests of programs; api/nodetest lets
// the tests of package api replace its parts.
package memnode
