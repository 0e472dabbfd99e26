package record

// FinalizationAttemptsMax bounds the attempts that a parent remembers.
const FinalizationAttemptsMax = 100

// Finalization is the claim to finalize a parent, and the attempts to get it. It is never changed
// in place.
type Finalization struct {
	// ProcessorID is who has the claim; if it is "", the next three fields are 0. The claim may be
	// over already: see Holder.
	ProcessorID string
	Token       uint64 // of that claim
	TimeoutMS   int64  // its length
	EndU        int64  // when it ends by the lease clock; others may claim it later: see OverU
	// Attempts are the last 100 attempts to claim it, oldest first.
	Attempts []FinalizationAttempt
}

// FinalizationAttempt is one attempt to claim a finalization.
type FinalizationAttempt struct {
	ProcessorID string
	Outcome     FinalizationOutcome
	Holder      string // who held it afterwards, or ""
	State       FinalizationState
	At          int64 // by T
}

// FinalizationOutcome is the outcome of an attempt to claim a finalization.
type FinalizationOutcome uint8

// The outcomes. The numbers are in snapshots and never change.
const (
	FinalizationClaimed        FinalizationOutcome = 1
	FinalizationExtended       FinalizationOutcome = 2 // claimed again by its holder
	FinalizationAlreadyClaimed FinalizationOutcome = 3 // by another
	FinalizationAlreadyDone    FinalizationOutcome = 4 // the parent has ended
	FinalizationNotReady       FinalizationOutcome = 5 // no step has completed or failed, or the task has no steps
	FinalizationNotFound       FinalizationOutcome = 6 // never in a record
)

// Claimed reports whether the processor got or kept the claim.
func (o FinalizationOutcome) Claimed() bool {
	return o == FinalizationClaimed || o == FinalizationExtended
}

// FinalizationState is the state of a parent on its way to its finalization, or the status
// of another task.
type FinalizationState uint8

// The states of a parent. The numbers are in snapshots and never change. A task without
// steps has PlainState + its status.
const (
	StateNotFound          FinalizationState = 1
	StateWaitingForSteps   FinalizationState = 2
	StateEvaluatingResults FinalizationState = 3 // all steps have ended
	StateComplete          FinalizationState = 4
	StateFailed            FinalizationState = 5
	StateCancelled         FinalizationState = 6

	PlainState FinalizationState = 16
)

var finalizationStateNames = [...]string{
	"", "not_found", "waiting_for_steps", "evaluating_results", "complete", "failed", "cancelled",
}

// String returns the API's name, or "" if the state is unknown.
func (s FinalizationState) String() string {
	switch {
	case s >= PlainState:
		return Status(s - PlainState).String()
	case int(s) < len(finalizationStateNames):
		return finalizationStateNames[s]
	}
	return ""
}

// SetFinalization replaces the finalization of the parent that is being edited; f may be
// nil. Copies of the task keep the old one.
func (t *Task) SetFinalization(f *Finalization) {
	o := *t.Options
	o.Parent = &Parent{Plan: o.Parent.Plan, Finalization: f}
	t.Options = &o
}

// DropFinalizationClaim ends the claim, if there is one.
func (t *Task) DropFinalizationClaim() {
	f := t.Parent().Finalization
	if f != nil && f.ProcessorID != "" {
		t.SetFinalization(&Finalization{Attempts: f.Attempts})
	}
}

// OverU returns when others may claim it, by the lease clock: after EndU plus the most by
// which two clocks may differ in a claim of that length (docs/guarantees.md), plus 2 ms
// because clocks are in whole milliseconds. So a processor that measures from before it
// sent its claim never overlaps with another.
func (f *Finalization) OverU() int64 { return f.EndU + overtime(f.TimeoutMS) }

// overtime returns the time that OverU adds for a claim of that length: 0.05 % and 2 ms.
func overtime(timeoutMS int64) int64 { return timeoutMS/2000 + 2 }

// Holder returns who holds the claim at time u by the lease clock, or "". f may be nil.
func (f *Finalization) Holder(u int64) string {
	if f == nil || u >= f.OverU() {
		return ""
	}
	return f.ProcessorID
}

// Lasting returns a copy whose claim lasts timeoutMS from u. timeoutMS becomes the claim's length,
// but the claim never ends earlier than before.
func (f *Finalization) Lasting(timeoutMS, u int64) *Finalization {
	longer := *f
	longer.TimeoutMS = timeoutMS
	longer.EndU = max(u+timeoutMS, f.OverU()-overtime(timeoutMS))
	return &longer
}

// IsFinalizing reports whether the task is a parent with a claim, over or not.
func IsFinalizing(t *Task) bool {
	return t.Status == StatusRunning && t.Parent() != nil && t.Parent().Finalization != nil && t.Parent().Finalization.ProcessorID != ""
}
