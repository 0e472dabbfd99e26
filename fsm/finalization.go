package fsm

import "github.com/claimq/claimq/fsm/record"

// ParentAnswer is what an answer tells of a parent beside its task. Each field
// is of some commands only.
type ParentAnswer struct {
	// Steps are the steps as they are after the command, in the plan's order: of
	// a Submit of one task, and of the commands about one task, if it has steps.
	Steps []StepView

	// Of ClaimFinalization, ExtendFinalization and ReleaseFinalization.

	Outcome record.FinalizationOutcome // of a claim
	Done    bool                       // extended, or released
	Holder  string                     // who holds the claim now, "" = nobody
	Token   uint64                     // of a claim that was got, else 0
	State   record.FinalizationState

	// AlreadyFinalized is true of a Finalize of a parent that had ended before:
	// Result.Task says how.
	AlreadyFinalized bool
}

// StepView is how one step is. What never changes is in its parent's plan.
type StepView struct {
	Type   string
	Status record.Status
	Error  string // of its last failure
}

// FinalizationView is what is known of a task's finalization, at one index.
type FinalizationView struct {
	Attempts  []record.FinalizationAttempt // read-only
	ClaimedBy string                       // "" = nobody
	// LeftMS is what the claim has left, 0 if nobody has it.
	LeftMS int64
}

// Finalization returns what is known of the task's finalization, ok false if
// there is no such task. One without steps has none: an empty view. A claim whose
// time is over by now is nobody's.
func (m *Machine) Finalization(id uint64, now record.Stamp) (v FinalizationView, ok bool) {
	t := m.tasks.Get(id)
	if t == nil || t.Parent() == nil || t.Parent().Finalization == nil {
		return FinalizationView{}, t != nil
	}
	f := t.Parent().Finalization
	v.Attempts = f.Attempts
	if v.ClaimedBy = f.Holder(now.U); v.ClaimedBy != "" {
		v.LeftMS = max(f.EndU-now.U, 0)
	}
	return v, true
}

// FinalizationCount returns how many claims of finalizations there are. Like those
// of tasks, they end by the lease clock.
func (m *Machine) FinalizationCount() int { return m.finalizing.Len() }

// clearFinalizations takes away claims that are over, a bounded number. Which
// ones a tick reaches changes no answer: who looks at one goes by the time alone.
func (m *Machine) clearFinalizations() {
	for range dueTickMax {
		id, ok := m.finalizing.Due(m.header.Stamp.U)
		if !ok {
			return
		}
		m.replaceFinalization(id, &record.Finalization{Attempts: m.tasks.Get(id).Parent().Finalization.Attempts})
	}
}
