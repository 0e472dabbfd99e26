// Package batch brings commands into log entries and their outcomes back to the callers, and keeps
// claims that wait for a task. Of Raft it knows only the future of an entry, and of the node only
// [Config] and [WaitersConfig]. Package cluster has one [Batcher] while a node runs, and [Waiters]
// for each of its leaderships.
//
//	batcher.go   the queue, the entry in flight, waiting for the outcome
//	lanes.go     which commands the next entry takes
//	waiters.go   waiting claims
//
// Invariants:
//
//   - Only one entry is in flight. It has the commands of a lane in order of arrival, no lane starves, and an expiry comes after
//     every settle and extend that arrived before it.
//   - A caller gets its command's result, or an error: either nothing was written, or nodes.ErrOutcomeUnknown.
//   - No wait is unbounded: a full queue refuses at once (nodes.Overload), Raft gets OutcomeTimeout, and nothing stays in the
//     queue after Close and Run.
//   - Claimable tasks are promised to the first waiter that they suit, and no waiter waits for tasks that are promised to none.
package batch
