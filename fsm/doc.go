// Package fsm is claimq's deterministic state machine: tasks, claims, leases, idempotency
// keys, claim requests, nodes, and the formats of a log entry and a snapshot.
//
// The same entries in the same order must give the same state, results and snapshot bytes
// on every node, forever. So this package does not use a clock, randomness, the environment
// or map order, starts no goroutine, takes no lock, does no I/O and does
// not log. Time comes as a Stamp inside the entry, chosen by the leader.
//
// A Machine is made of owners: each keeps saved records and what is derived of them in step,
// and knows no other owner. Methods of the Machine keep several owners in step (account.go,
// trail.go), or are for other packages. Each command is one function, in the file of its noun;
// apply.go calls it.
//
// The files in reading order. Each uses only those before it, which the linter checks:
//
//	names.go result.go answers.go
//	rates.go tasktypes.go times.go parents.go gone.go requests.go schedules.go
//	machine.go trail.go account.go undo.go
//	stats.go members.go tasktype.go
//	lifecycle.go repeats.go claim.go removal.go
//	finalization.go steps.go settle.go submit.go complete.go act.go schedule.go due.go
//	snapshot.go restore.go apply.go
//	list.go why.go
//
// Its subpackages: command has the changes of the state as an entry holds them, index decides
// what can be claimed next and finds tasks in other orders, record has the saved records, their
// encoding and the tables that keep them, event has the trail, and snapshot encodes a whole
// state. Other packages import command, event and latency, and use the names
// in names.go for the rest.
//
// The package does not know Raft, HTTP, or which node it runs on. Package cluster feeds it
// committed entries and owns the one lock around it.
package fsm
