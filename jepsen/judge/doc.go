// Package judge says whether a run under faults shows what the contract
// promises. All it needs is in the history, so a stored one gets the same
// verdict whenever it is judged again.
//
// It puts together what package check says of the answers and the trail, and
// adds what only the whole run can say: that the cluster recovers in time once a fault is over, that all nodes
// hold the same state and tell the same trail at the end, that no process ended by itself, and that
// none grew without bound.
package judge
