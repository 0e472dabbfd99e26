package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// TestMachine_Judge judges each command before it is applied. A judgement must equal the
// result of applying the command, and a machine that skips judged commands must reach the
// same state. Every refusal of a settle is judged, and every repeat except the first that
// reports a claim again.
func TestMachine_Judge(t *testing.T) {
	t.Parallel()
	judged := map[command.Kind]int{}
	proof.Check(t, func(rt *rapid.T) {
		full, spared := New(), New()
		full.gone.max, spared.gone.max = smallMemory, smallMemory
		for _, e := range drawLog(rt, 40) {
			c := e.Commands[0]
			tells := tellsFirst(full, c)
			got, ok := full.Judge(c, e.Stamp)
			want := mustApplyTo(rt, full, e).Results[0]
			if ok != (judgeable(c, want) && !tells) {
				rt.Fatalf("entry %d: %#v is judged: %v, and applied it says %+v", e.Index, c, ok, want)
			}
			if ok {
				judged[command.KindOf(c)]++
				if diff := diffBy(want, got, plansToo); diff != "" {
					rt.Fatalf("entry %d: %#v (-applied +judged):\n%s", e.Index, c, diff)
				}
				e.Commands[0] = command.Checkpoint{}
			}
			mustApplyTo(rt, spared, e)
		}
		if full.Snapshot().Hash() != spared.Snapshot().Hash() {
			rt.Fatal("the states differ")
		}
	})
	if !proof.Whole() { // fewer logs do not have them all
		return
	}
	for _, k := range []command.Kind{command.KindComplete, command.KindFail, command.KindExtend, command.KindRelease, command.KindFinalize, command.KindBatch} {
		if judged[k] == 0 {
			t.Errorf("no command of kind %d was judged", k)
		}
	}
}

// tellsFirst reports whether the complete has completed its task before, and its answer would
// be the second that tells of a claim.
func tellsFirst(m *Machine, c command.Command) bool {
	complete, ok := c.(command.Complete)
	if !ok {
		return false
	}
	result, acts := holdOf(m, complete.Hold, record.OutcomeCompleted)
	if acts || !result.Repeated || result.Task.Then == nil {
		return false
	}
	return slices.ContainsFunc(result.Task.Then.Claims, func(c record.ClaimRef) bool {
		t := m.Get(c.TaskID)
		return t != nil && t.Status == record.StatusClaimed && t.Token == c.Token && t.LeaseSeq == 1
	})
}

// judgeable reports whether what applying the command said is to be known before. A complete
// is judged by its claim alone, not by the claim and the tasks that follow it.
func judgeable(c command.Command, r Result) bool {
	switch c := c.(type) {
	case command.Complete:
		ofWhatFollows := r.Code == CodeInvalidRequest || r.Code == CodeInvalidTask
		return r.Code != "" && !ofWhatFollows || r.Repeated
	case command.Fail, command.Extend, command.Release:
		return r.Code != "" || r.Repeated
	case command.Finalize:
		return r.Code != "" || r.Parent.AlreadyFinalized
	case command.Batch:
		if c.Atomic {
			return r.Code != "" && r.FailedOp == 0 && judgeable(c.Ops[0], r)
		}
		for i, op := range c.Ops {
			if r.Results[i].Code == "" || !judgeable(op, r.Results[i]) {
				return false
			}
		}
		return true
	}
	return false
}
