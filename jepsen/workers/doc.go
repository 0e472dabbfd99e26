// Package workers exposes real worker processes of the client library to everything that
// can happen to them: they are stopped past their leases, killed, asked to end, cut off
// from the network, and the leader is killed at each of their calls.
//
// jepsen/README.md says what is done to them, and what the judge checks.
//
// The worker process is the program in worker.
package workers
