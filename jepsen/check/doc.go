// Package check says whether a history can be what a correct queue answered.
//
// It trusts no server, and shares no code
// with the state machine, and its model of a task (model.go) was written from
// the contract alone, so that it does not agree with the server's mistakes.
//
// One index of the history (index.go) is what all look at. Whatever an answer says of
// the state of one task, of a parent too, the model decides: porcupine looks for an order
// of all calls about the task that explains all their answers. The rules state what the
// model cannot know: what is about several calls or tasks (repeats.go), and
// about time (leases.go, late.go, times.go).
//
// The calls are ordered by the log indexes that their answers carry, which are the claim to be
// proven (log.go). What each rule says is in jepsen/README.md.
//
// If there is the trail that the nodes keep, it is held against the answers (trail*.go). It
// tells what changed, and when, also what no answer names: ends of leases, and
// commands of unknown outcome. So it is known at each event what the state is, and that
// is held against what the answers show of it.
//
// Of a run under faults it also says what only the whole run can (late.go, recovery.go,
// state.go). All that Judge needs is in the history, so a stored one gets the same verdict
// whenever it is judged again.
package check
