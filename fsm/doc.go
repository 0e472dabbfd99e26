// Package fsm is claimq's deterministic state machine: tasks, claims, leases, idempotency
// keys, claim requests, nodes, and the formats of a log entry and a snapshot.
//
// The same entries in the same order must give the same state, results and snapshot bytes
// on every node, forever. So this package does not use a clock, randomness, the environment
// or map order, starts no goroutine, takes no lock, does no I/O of its own and does not
// log. Time comes as a Stamp inside the entry, chosen by the leader.
//
// A Machine has three parts: what is saved, what is derived from it, and the effects of the
// entry being applied (machine.go). A method that needs one part alone belongs to that
// part; a method that keeps several in step belongs to the Machine. Each command is one
// method, in the file of its noun; apply.go calls it.
//
// Its subpackages: command has the changes of the state as an entry holds them, claimable
// decides what can be claimed next, record has the saved records and their encoding,
// snapshot encodes a whole state, and table, index and trail hold records, orders and
// events. Other packages import command, event, errorgroup and latency, and use the names
// in names.go for the rest.
//
// The package does not know Raft, HTTP, or which node it runs on. Package cluster feeds it
// committed entries and owns the one lock around it.
//
//	m := fsm.New()
//	entry := command.AppendEntry(nil, fsm.Stamp{U: 1, T: now}, command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}})
//	applied, err := m.Apply(1, entry)
package fsm
