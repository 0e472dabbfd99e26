package fsm

// finalizationAttemptsMax bounds the attempts that a parent remembers.
const finalizationAttemptsMax = 100

// Finalization is the claim of a parent's finalization, and who tried to get
// it. It is never changed in place.
type Finalization struct {
	// ProcessorID holds the claim, "" if nobody does; then the next three are 0.
	// One whose time is over may still be here: see holder.
	ProcessorID string
	Token       uint64 // of that claim
	TimeoutMS   int64  // its length
	EndU        int64  // when it ends by the lease clock; it is over later: see overU
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
// a task without steps is plainState + its status.
const (
	StateNotFound          FinalizationState = 1
	StateWaitingForSteps   FinalizationState = 2
	StateEvaluatingResults FinalizationState = 3 // all steps have ended
	StateComplete          FinalizationState = 4
	StateFailed            FinalizationState = 5
	StateCancelled         FinalizationState = 6

	plainState FinalizationState = 16
)

var finalizationStateNames = [...]string{
	"", "not_found", "waiting_for_steps", "evaluating_results", "complete", "failed", "cancelled",
}

// String returns the contract's name, "" for an unknown state.
func (s FinalizationState) String() string {
	switch {
	case s >= plainState:
		return Status(s - plainState).String()
	case int(s) < len(finalizationStateNames):
		return finalizationStateNames[s]
	}
	return ""
}

// ParentAnswer is what an answer tells of a parent beside its task. Each field
// is of some commands only.
type ParentAnswer struct {
	// Steps are the steps as they are after the command, in the plan's order: of
	// a Submit of one task, and of the commands about one task, if it has steps.
	Steps []StepView

	// Of ClaimFinalization, ExtendFinalization and ReleaseFinalization.

	Outcome FinalizationOutcome // of a claim
	Done    bool                // extended, or released
	Holder  string              // who holds the claim now, "" = nobody
	Token   uint64              // of a claim that was got, else 0
	State   FinalizationState

	// AlreadyFinalized is true of a Finalize of a parent that had ended before:
	// Result.Task says how.
	AlreadyFinalized bool
}

// StepView is how one step is. What never changes is in its parent's plan.
type StepView struct {
	Type   string
	Status Status
	Error  string // of its last failure
}

// FinalizationView is what is known of a task's finalization, at one index.
type FinalizationView struct {
	Attempts  []FinalizationAttempt // read-only
	ClaimedBy string                // "" = nobody
	// LeftMS is what the claim has left, 0 if nobody has it.
	LeftMS int64
}

// Finalization returns what is known of the task's finalization, ok false if
// there is no such task. One without steps has none: an empty view. A claim whose
// time is over by now is nobody's.
func (m *Machine) Finalization(id uint64, now Stamp) (v FinalizationView, ok bool) {
	t := m.tasks.Get(id)
	if t == nil || t.Parent() == nil || t.Parent().Finalization == nil {
		return FinalizationView{}, t != nil
	}
	f := t.Parent().Finalization
	v.Attempts = f.Attempts
	if v.ClaimedBy = f.holder(now.U); v.ClaimedBy != "" {
		v.LeftMS = max(f.EndU-now.U, 0)
	}
	return v, true
}

// setFinalization gives the parent that is being edited another finalization;
// nil = none. What it shared with copies of it stays as it was.
func (t *Task) setFinalization(f *Finalization) {
	o := *t.Options
	o.Parent = &Parent{Plan: o.Parent.Plan, Finalization: f}
	t.Options = &o
}

// dropFinalizationClaim takes the claim from who has it, if anyone does.
func (t *Task) dropFinalizationClaim() {
	f := t.Parent().Finalization
	if f != nil && f.ProcessorID != "" {
		t.setFinalization(&Finalization{Attempts: f.Attempts})
	}
}
