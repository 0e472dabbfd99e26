// Package nodes holds the values that a node (package cluster) and its callers (package api) share, so that neither
// imports the other: the outcome of a proposal and its errors, what nodes tell each other about a forwarded request,
// a node's view of the cluster, and the operator of a call.
//
// It has no rules, no clock and no connections. Package fsm does not import it: in the state and the log a node is an
// fsm.NodeRecord.
package nodes
