// Package replica is one node's copy of the state: what Raft calls its FSM.
//
//	replica.go    entries that Raft has committed go into the state; readers look at it
//	chain.go      the running checksum of what was applied
//	snapshot.go   the state is captured and written, at a bounded rate
//	restore.go    a snapshot takes the place of the state
//	watch.go      waits for the end of a task, or for events
//	indexwait.go  waits for an index of the log
//	answers.go    memory of results, used again
//
// It decides nothing about tasks (package fsm does) and knows no other node, no leadership
// and no disk: package cluster makes it, gives it to Raft, and tells it by [Replica.Lead]
// who wants to hear of each entry. What always holds:
//
//   - One lock is around the state. Apply holds it for an entry, readers between entries.
//   - Nothing is applied or captured that this node's own disk does not have.
//   - An entry that cannot be applied ends the node; nothing is applied after it.
//   - Whoever waits looks at the state under the lock under which entries are told of: no
//     entry comes between the look and the wait.
package replica
