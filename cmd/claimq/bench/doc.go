// Package bench drives a running claimq cluster like many workers, and reports tasks per second, the latency of each
// call, the resources used by the servers, and whether every task was done exactly once.
//
// It implements the needed part of HTTP itself, with as little work per call as possible, because it often shares the
// processors with the servers that it measures. It checks each answer: an id for each submitted task, a token for
// each claimed one, the right task completed. It does not repeat calls: an error ends the run, because the figures
// would mean nothing.
//
// With Config.Client it uses package client, like a Go program, so its figures are those that users get.
package bench
