// Package check says whether a history can be what a correct queue answered.
//
// It trusts no server: only the caller's own times, and that a call took
// effect, if it did, between being made and being answered. It shares no code
// with the state machine, and its model of a task (model.go) was written from
// the contract alone, so that it does not agree with the server's mistakes.
//
// Two kinds of checks look at the same facts. The rules (submits.go, claims.go,
// leases.go, settles.go, reads.go, final.go) each state one sentence of the
// contract and say in words who broke it. The model then asks of each task
// whether any order of all its calls explains all their answers, which covers
// what nobody thought of writing a rule for.
//
//	report := check.Check(h, check.Options{Drained: true})
//	if !report.OK() { fmt.Print(report) }
package check
