// Package nodes holds the values that a node and its callers share, so that the API and the node need not know each
// other: the outcome of a proposal (Proposed), errors, a node's view of the cluster, and the operator of a call
// (Operator).
//
// It contains only values: no rules, no clock, no connections. The state machine does not know it; in the log nodes
// appear only as records.
package nodes
