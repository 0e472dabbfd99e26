// Package check says whether a history can be what a correct queue answered.
//
// It trusts no server and shares no code with the state machine. Its model of a task (model.go) was
// written from the contract alone, so that it does not repeat the server's mistakes.
//
// All checks read one index of the history (index.go). The model decides about every answer that
// shows the state of one task, parents included: porcupine looks for an order of all calls for the
// task that explains all their answers. The rules cover what the model cannot know: several calls
// or tasks (repeats.go) and time (leases.go, late.go, times.go).
//
// The log indexes in the answers give the order of the calls, and log.go checks that this order is
// possible. jepsen/README.md describes each rule.
//
// If the history has the nodes' trail, trail*.go compares it with the answers. The trail says what
// changed and when, including what no answer tells: leases that ended and commands of unknown
// outcome. It thus gives the state at each event, which must agree with the answers.
//
// For a run under faults there are rules about the run as a whole (late.go, recovery.go, state.go).
// The history contains everything that Judge needs, so that a stored one gets the same verdict
// again.
package check
