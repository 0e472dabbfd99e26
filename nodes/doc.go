// Package nodes is what a node and those who ask it share, so that the API and the node
// need not know each other: how a proposal ended (Proposed), why it did not come to one
// (the errors), what a node sees of the cluster, and who asks (Operator).
//
// It is values alone: no rule, no clock, no connection. The state machine does not know
// it: there are no nodes in an entry of the log but as records.
package nodes
