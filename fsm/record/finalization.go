package record

// FinalizationAttemptsMax bounds the attempts that a parent remembers.
const FinalizationAttemptsMax = 100

// Finalization is the claim of a parent's finalization, and who tried to get
// it. It is never changed in place.
type Finalization struct {
	// ProcessorID holds the claim, "" if nobody does; then the next three are 0.
	// One whose time is over may still be here: see holder.
	ProcessorID string
	Token       uint64 // of that claim
	TimeoutMS   int64  // its length
	EndU        int64  // when it ends by the lease clock; it is over later: see OverU
	// Attempts are the last 100 claims that were tried, oldest first.
	Attempts []FinalizationAttempt
}

// FinalizationAttempt is one claim of a finalization that was tried.
type FinalizationAttempt struct {
	ProcessorID string
	Outcome     FinalizationOutcome
	Holder      string // who held it afterwards, "" = nobody
	State       FinalizationState
	At          int64 // by T
}

// FinalizationOutcome is the outcome of a claim of a finalization.
type FinalizationOutcome uint8

// The outcomes. The numbers are in snapshots and never change.
const (
	FinalizationClaimed        FinalizationOutcome = 1
	FinalizationExtended       FinalizationOutcome = 2 // claimed again by its holder
	FinalizationAlreadyClaimed FinalizationOutcome = 3 // by another
	FinalizationAlreadyDone    FinalizationOutcome = 4 // the parent has ended
	FinalizationNotReady       FinalizationOutcome = 5 // no step has completed or failed, or there are none
	FinalizationNotFound       FinalizationOutcome = 6 // never in a record
)

// Claimed reports whether the processor has the claim.
func (o FinalizationOutcome) Claimed() bool {
	return o == FinalizationClaimed || o == FinalizationExtended
}

// FinalizationState is how far a task is on the way to its finalization: that of
// a parent, or the status of a task that is none.
type FinalizationState uint8

// The states of a parent. The numbers are in snapshots and never change. That of
// a task without steps is PlainState + its status.
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

// String returns the contract's name, "" for an unknown state.
func (s FinalizationState) String() string {
	switch {
	case s >= PlainState:
		return Status(s - PlainState).String()
	case int(s) < len(finalizationStateNames):
		return finalizationStateNames[s]
	}
	return ""
}

// SetFinalization gives the parent that is being edited another finalization;
// nil = none. What it shared with copies of it stays as it was.
func (t *Task) SetFinalization(f *Finalization) {
	o := *t.Options
	o.Parent = &Parent{Plan: o.Parent.Plan, Finalization: f}
	t.Options = &o
}

// DropFinalizationClaim takes the claim from who has it, if anyone does.
func (t *Task) DropFinalizationClaim() {
	f := t.Parent().Finalization
	if f != nil && f.ProcessorID != "" {
		t.SetFinalization(&Finalization{Attempts: f.Attempts})
	}
}

// OverU returns when the claim is over for others, by the lease clock: after its
// end as much longer as two clocks may differ in a claim of that length
// (docs/guarantees.md), and 2 ms, as the clocks are whole milliseconds. So a
// processor that counts from before it sent its claim never has company.
func (f *Finalization) OverU() int64 { return f.EndU + overtime(f.TimeoutMS) }

// overtime is what OverU adds for a claim of that length: 0.05 % and 2 ms.
func overtime(timeoutMS int64) int64 { return timeoutMS/2000 + 2 }

// Holder returns who holds the claim at that time by the lease clock, "" if nobody
// does. f may be nil.
func (f *Finalization) Holder(u int64) string {
	if f == nil || u >= f.OverU() {
		return ""
	}
	return f.ProcessorID
}

// Lasting returns the finalization as it is when its claim is to last
// timeoutMS from now. That is the claim's length from then on; but it is over no
// earlier than it was.
func (f *Finalization) Lasting(timeoutMS, u int64) *Finalization {
	longer := *f
	longer.TimeoutMS = timeoutMS
	longer.EndU = max(u+timeoutMS, f.OverU()-overtime(timeoutMS))
	return &longer
}

// IsFinalizing reports whether the task is a parent that has a claim, over or not.
func IsFinalizing(t *Task) bool {
	return t.Status == StatusRunning && t.Parent() != nil && t.Parent().Finalization != nil && t.Parent().Finalization.ProcessorID != ""
}
