// Package history contains what the recorder writes and the checker reads: every call of a
// run with its times and its outcome, what was done to the cluster meanwhile, and the state
// at the end.
//
// It only holds facts. Package check decides whether they can all be true.
package history
