// Package batch is the way of a command into an entry of the log, and of its
// outcome back to the caller that waits for it; and the claims that wait for a task meanwhile. It knows no
// Raft but the future of an entry, and no node but what [Config] and [WaitersConfig] tell.
// Package cluster has one [Batcher] for as long as a node runs, and [Waiters] for each of
// its leaderships.
//
//	batcher.go   the queue, the entry in flight, who waits for the outcome
//	lanes.go     which commands the next entry takes
//	waiters.go   claims that wait
//
// What always holds:
//
//   - One entry is in flight. Commands of a lane are in it in order of arrival, no lane
//     starves, and an expiry is behind every settle and extend that came before it.
//   - A caller gets the result of its own command, or an error: that nothing of it was
//     written, or fsm.ErrOutcomeUnknown if it may have been.
//   - Nobody waits for ever: for room not at all (fsm.Overload), for Raft OutcomeTimeout
//     at most, and after Close and Run nothing is left in the queue.
//   - What is claimable is promised to the first waiter whom it suits; nobody waits for
//     what nobody was promised.
package batch
