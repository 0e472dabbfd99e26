// Package replica holds one node's copy of the state, which Raft calls its FSM.
//
//	replica.go    applies committed entries to the state; readers access it
//	chain.go      the running checksum of what was applied
//	snapshot.go   captures the state and writes it at a bounded rate
//	restore.go    replaces the state by a snapshot
//	watch.go      waits for the end of a task, or for events
//	indexwait.go  waits for an index of the log
//	answers.go    reusable memory for results
//
// It decides nothing about tasks (package fsm does) and knows no other node, leadership or
// disk. Package cluster creates it, gives it to Raft, and registers with [Replica.Lead] for
// each entry. Invariants:
//
//   - There is one lock around the state. Apply holds it for an entry, readers between entries.
//   - Nothing is applied or captured that is not on this node's own disk.
//   - An entry that cannot be applied ends the node; nothing is applied after it.
//   - A wait checks the state under the lock under which entries are reported, so that no entry comes between the check and the wait.
package replica
