// Package history is what the recorder writes and the checker reads: every
// call of a run with its times and its outcome, what was done to the cluster
// meanwhile, and the state at the end.
//
// It holds facts only. Whether they can be true together is package check's
// question.
package history
