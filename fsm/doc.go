// Package fsm is claimq's deterministic state machine: tasks, claims, leases,
// idempotency keys, claim requests, nodes, and the formats of a log entry and
// of a snapshot.
//
// The same entries in the same order give the same state, the same results
// and the same snapshot bytes on every node, for ever. So nothing here looks
// at a clock, at randomness, at the environment or at the order of a map,
// starts a goroutine, takes a lock, does I/O of its own or logs: time arrives
// as a Stamp inside the entry, decided by the leader.
//
// A Machine is three parts: what is saved, what is derived of it, and the effects of
// the entry that is being applied (machine.go). A method that needs one part alone is
// that part's; what has to keep two of them in step is the Machine's. What a command does
// is one method, in the file of its noun; apply.go calls it.
//
// Its rooms: command is what changes the state, as an entry has it; claimable what can be
// claimed next; record what is saved, and the bytes of each; snapshot a whole state as
// bytes; table, index and trail are where records, orders and events are kept. Commands are
// known to all; of the others they know what names.go names.
//
// What it does not do: it does not know Raft, HTTP, or which node it runs on.
// Package cluster feeds it committed entries and owns the one lock around it.
//
//	m := fsm.New()
//	entry := command.AppendEntry(nil, fsm.Stamp{U: 1, T: now}, command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}})
//	applied := m.Apply(1, entry)
package fsm
