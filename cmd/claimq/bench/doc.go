// Package bench drives a running claimq cluster as many workers would, and
// reports tasks a second, the latency of each call, what the servers used, and
// whether every task was done exactly once.
//
// It speaks HTTP by itself, with as little work per call as it can, because it
// often shares the processors with the servers that it measures. It looks into
// each answer: an id for each task that was submitted, a token for each that was
// claimed, the right task completed. It does not repeat calls: an error ends the
// run, for then the figures mean nothing.
//
// With Config.Client it has package client do the work, as a Go program does: its
// figures are those that users get.
package bench
