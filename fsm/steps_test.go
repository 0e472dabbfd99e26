package fsm

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// manySteps returns a parent with n steps, each with the task.
func manySteps(n int, step record.NewTask) record.NewTask {
	p := &record.NewParent{Steps: make([]record.NewStep, n)}
	for i := range p.Steps {
		p.Steps[i] = record.NewStep{Name: fmt.Sprint("s", i), Task: step}
	}
	return record.NewTask{Type: "parent", Parent: p}
}

// bounded is a machine with parents of 1,000 steps, whose ids are 1, 1002, ...
type bounded struct {
	t     *testing.T
	m     *Machine
	stamp record.Stamp
}

func newBounded(t *testing.T, parents int, step record.NewTask) *bounded {
	b := &bounded{t: t, m: New(), stamp: record.Stamp{T: 1000}}
	b.m.header.Level = record.FeatureLevel
	for range parents {
		b.apply(command.Submit{Tasks: []record.NewTask{manySteps(record.StepsMax, step)}})
	}
	return b
}

func parentAt(i int) uint64 { return uint64(i)*(record.StepsMax+1) + 1 }

func (b *bounded) apply(c ...command.Command) Applied {
	b.t.Helper()
	return mustApply(b.t, b.m, b.m.Index()+1, command.AppendEntry(nil, b.stamp, c...))
}

// TestSteps_stopOnce ensures that the end of one step changes each of the others
// once, whatever came of how many claims.
func TestSteps_stopOnce(t *testing.T) {
	t.Parallel()
	b := newBounded(t, 1, record.NewTask{Type: "load"})
	b.apply(command.ClaimNext{WorkerID: "w1", Limit: 500})
	before := b.m.changed
	a := b.apply(command.Fail{Hold: command.Hold{ID: 2, WorkerID: "w1"}, Permanent: true})
	if got := b.m.changed - before; got != record.StepsMax || len(a.Ended) != 501 {
		t.Errorf("%d changes, %d ends, want %d and 501", got, len(a.Ended), record.StepsMax)
	}
	before = b.m.changed
	for id := uint64(3); id < 501; id++ {
		b.apply(command.Fail{Hold: command.Hold{ID: id, WorkerID: "w1"}})
	}
	if got := b.m.changed - before; got != 498 || b.m.Get(1).Status != record.StatusRunning {
		t.Errorf("%d changes for 498 steps, the parent is %v", got, b.m.Get(1).Status)
	}
	if b.apply(command.Complete{Hold: command.Hold{ID: 501, WorkerID: "w1"}}); b.m.Get(1).Status != record.StatusFailed {
		t.Errorf("the parent is %v in the end", b.m.Get(1).Status)
	}
	mustCheck(t, b.m)
}

// TestClaimNext_boundsWhatStepsName ensures that an answer is bounded by the names
// of the steps that its steps depend on, too: those of a thousand steps could
// take 130 MB.
func TestClaimNext_boundsWhatStepsName(t *testing.T) {
	t.Parallel()
	const thin, wide = 940, 60
	parent := manySteps(thin+wide, record.NewTask{Type: "thin"})
	var thins []uint16
	for place := range parent.Parent.Steps {
		s := &parent.Parent.Steps[place]
		if s.Name = fmt.Sprintf("%0128d", place); place < thin {
			thins = append(thins, uint16(place))
		} else {
			s.Task.Type, s.DependsOn = "wide", thins
		}
	}
	b := newBounded(t, 0, record.NewTask{})
	b.apply(command.Submit{Tasks: []record.NewTask{parent, parent}})
	for {
		claims := b.apply(command.ClaimNext{WorkerID: "w1", Types: []string{"thin"}, Limit: 1000}).Results[0].Claims
		if len(claims) == 0 {
			break
		}
		for i := range claims {
			b.apply(command.Complete{Hold: command.Hold{ID: claims[i].Task.ID, WorkerID: "w1"}})
		}
	}
	next := command.ClaimNext{WorkerID: "w1", Types: []string{"wide"}, Limit: 1000}
	const fit = (8 << 20) / (thin * 131)
	if got := len(b.apply(next).Results[0].Claims); got != fit {
		t.Errorf("%d steps in an answer, want %d", got, fit)
	}
	if got := len(b.apply(next).Results[0].Claims); got != 2*wide-fit {
		t.Errorf("%d steps in the next answer, want the other %d", got, 2*wide-fit)
	}
}

// TestSubmit_tellsOfOneParent ensures that the steps are told of a parent that is
// submitted alone, and not of one of many.
func TestSubmit_tellsOfOneParent(t *testing.T) {
	t.Parallel()
	b := newBounded(t, 0, record.NewTask{})
	parent := manySteps(2, record.NewTask{Type: "load"})
	for _, tasks := range [][]record.NewTask{{parent, {Type: "plain"}}, {parent, parent}, {{Type: "plain"}}} {
		if p := b.apply(command.Submit{Tasks: tasks}).Results[0].Parent; p != nil {
			t.Errorf("%d tasks: told %+v", len(tasks), *p)
		}
	}
	if p := b.apply(command.Submit{Tasks: []record.NewTask{parent}}).Results[0].Parent; p == nil || len(p.Steps) != 2 {
		t.Errorf("one parent: told %+v", p)
	}
}

// TestTick_boundsWhatStepsTakeAlong ensures that a tick stops when it has changed
// enough tasks, and the next one goes on.
func TestTick_boundsWhatStepsTakeAlong(t *testing.T) {
	t.Parallel()
	const parents = 12
	b := newBounded(t, parents, record.NewTask{Type: "load", ExpiresAt: 2000})
	b.stamp.T = 2000
	left := func() (n int) {
		for i := range parents {
			if b.m.Get(parentAt(i)).Status == record.StatusRunning {
				n++
			}
		}
		return n
	}
	for _, want := range []int{2, 0} {
		if at, ok := b.m.NextDue(); !ok || at > b.stamp.T {
			t.Fatalf("due at %d, %v", at, ok)
		}
		b.apply(command.Tick{})
		mustCheck(t, b.m)
		if got := left(); got != want {
			t.Fatalf("%d parents are left after a tick, want %d", got, want)
		}
	}
}

// TestRemoval_boundsByTasks ensures that retention and eviction count the steps
// of what they remove.
func TestRemoval_boundsByTasks(t *testing.T) {
	t.Parallel()
	b := newBounded(t, 5, record.NewTask{Type: "load"})
	for i := range 5 {
		b.apply(command.Cancel{ID: parentAt(i)})
	}
	if got := b.apply(command.Evict{}).Results[0].Evicted; got != 2*(record.StepsMax+1) {
		t.Errorf("evicted %d tasks, want those of two parents", got)
	}
	b.stamp.T += defaultRetentionMS
	if got := b.apply(command.Tick{}).Removed; got != 2*(record.StepsMax+1) {
		t.Errorf("a tick removed %d tasks, want those of two parents", got)
	}
	if got := b.apply(command.Tick{}).Removed; got != record.StepsMax+1 || b.m.EndedBytes() != 0 || b.m.tasks.Len() != 0 {
		t.Errorf("the next one removed %d tasks, %d bytes and %d tasks are left", got, b.m.EndedBytes(), b.m.tasks.Len())
	}
	mustCheck(t, b.m)
}

// TestBatch_boundsChanges ensures that a batch refuses the op that could bring it
// over 10,000 changed tasks, and only that.
func TestBatch_boundsChanges(t *testing.T) {
	t.Parallel()
	b := newBounded(t, 10, record.NewTask{Type: "load"})
	var ops []command.Command
	for i := range 10 {
		ops = append(ops, command.Cancel{ID: parentAt(i)})
	}
	ops = append(ops, command.Submit{Tasks: []record.NewTask{manySteps(record.StepsMax-11, record.NewTask{Type: "load"})}}, command.Submit{Tasks: []record.NewTask{{Type: "one"}}})

	hash := hashOf(b.m)
	r := b.apply(command.Batch{Atomic: true, Ops: ops}).Results[0]
	if r.Code != CodeInvalidRequest || r.Reason != ReasonReach || r.FailedOp != 9 || b.m.Get(1).Status != record.StatusRunning || b.m.parents.byID[1].open() != record.StepsMax {
		t.Errorf("atomic: %v at %d, the first parent is %v", r.Code, r.FailedOp, b.m.Get(1).Status)
	}
	if b.m.header.Index--; hashOf(b.m) != hash {
		t.Error("it left traces")
	}
	r = b.apply(command.Batch{Ops: ops}).Results[0]
	for i, got := range r.Results {
		if i == 9 && (got.Code != CodeInvalidRequest || got.Reason != ReasonReach) || i != 9 && got.Code != "" {
			t.Errorf("op %d: %q, %q", i, got.Code, got.Reason)
		}
		if got.Parent != nil {
			t.Errorf("op %d tells of steps", i)
		}
	}
	if b.m.Get(parentAt(9)).Status != record.StatusRunning {
		t.Error("the refused op did something")
	}
	mustCheck(t, b.m)
}

// TestBatch_countsATaskOnce ensures that a batch that completes steps of a large
// parent, with follow-ups, is not taken for one that changes all of it each time.
func TestBatch_countsATaskOnce(t *testing.T) {
	t.Parallel()
	b := newBounded(t, 1, record.NewTask{Type: "load"})
	b.apply(command.ClaimNext{WorkerID: "w1", Limit: record.StepsMax})
	followUps := slices.Repeat([]record.NewTask{{Type: "a"}}, 8)
	var ops []command.Command
	for i := range uint64(record.StepsMax) {
		ops = append(ops, command.Complete{Hold: command.Hold{ID: i + 2, WorkerID: "w1"}, Submit: followUps})
	}
	for i, r := range b.apply(command.Batch{Ops: ops}).Results[0].Results {
		if r.Code != "" {
			t.Fatalf("op %d: %s", i, r.Code)
		}
	}
	if got := b.m.Get(1).Status; got != record.StatusCompleted {
		t.Errorf("the parent is %v", got)
	}
}

// TestRebuild_refusesStepsThatDoNotFit ensures that no state is built of records
// that contradict each other about parents and steps.
func TestRebuild_refusesStepsThatDoNotFit(t *testing.T) {
	t.Parallel()
	set := func(id uint64, change func(t *record.Task)) func(*Machine) {
		return func(m *Machine) { change(m.tasks.Edit(id)) }
	}
	status := func(s record.Status) func(*record.Task) { return func(t *record.Task) { t.Status = s } }
	for name, damage := range map[string]func(m *Machine){
		"a step whose parent is not there":    func(m *Machine) { m.tasks.Remove(1) },
		"a step of a plain task":              set(1, func(t *record.Task) { t.Options = nil }),
		"a step behind the plan's end":        set(5, func(t *record.Task) { t.Options = &record.Options{Step: &record.Step{ParentID: 1}} }),
		"a step before its parent":            set(1, func(t *record.Task) { t.Options = &record.Options{Step: &record.Step{ParentID: 2}} }),
		"a step of another parent":            set(3, func(t *record.Task) { t.Options = &record.Options{Step: &record.Step{ParentID: 6}} }),
		"a parent that lacks a step":          func(m *Machine) { m.tasks.Remove(3) },
		"a parent whose step is a plain task": set(4, func(t *record.Task) { t.Options = nil }),
		"an end before that of a step":        set(1, status(record.StatusCancelled)),
		"blocked without a reason":            set(2, status(record.StatusBlocked)),
		"free too early":                      set(3, status(record.StatusPending)),
		"completed too early":                 set(3, status(record.StatusCompleted)),
		"a step with a time to be removed":    set(3, func(t *record.Task) { t.Status, t.RemoveAt = record.StatusFailed, 5 }),
		"a cycle":                             set(1, func(t *record.Task) { t.Options.Parent.Plan.Steps[0].DependsOn = []uint16{2} }),
		"a place that is not there":           set(1, func(t *record.Task) { t.Options.Parent.Plan.Steps[2].DependsOn = []uint16{1, 3} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := New()
			m.header.Level = record.FeatureLevel
			parent := manySteps(3, record.NewTask{Type: "load"})
			parent.Parent.Steps[1].DependsOn = []uint16{0}
			parent.Parent.Steps[2].DependsOn = []uint16{1}
			mustApply(t, m, 1, command.AppendEntry(nil, record.Stamp{}, command.Submit{Tasks: []record.NewTask{parent, {Type: "plain"}, manySteps(1, record.NewTask{Type: "load"})}}))
			if err := m.rebuild(); err != nil {
				t.Fatalf("undamaged: %v", err)
			}
			damage(m)
			if p := m.Get(1); p != nil && p.Parent() != nil { // as a decoder leaves it
				plan := p.Parent().Plan
				for place := range plan.Steps {
					plan.Steps[place].Dependents = nil
				}
				plan.Link()
			}
			if err := m.rebuild(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("rebuilt: %v", err)
			}
		})
	}
}

// TestMachine_ReachOf counts what each command may change.
func TestMachine_ReachOf(t *testing.T) {
	t.Parallel()
	b := newBounded(t, 1, record.NewTask{Type: "load"})
	b.apply(command.Submit{Tasks: []record.NewTask{{Type: "plain"}}})
	const plain, gone = record.StepsMax + 2, record.StepsMax + 3
	parent := []record.NewTask{manySteps(2, record.NewTask{Type: "load"})}
	all := record.StepsMax + 1
	for _, c := range []struct {
		cmd  command.Command
		want int
	}{
		{command.Submit{Tasks: parent}, 3},
		{command.ClaimNext{Limit: 9}, 9},
		{command.Complete{Hold: command.Hold{ID: 2}, Submit: parent, Claim: &command.ClaimNext{Limit: 9}}, all + 12},
		{command.Complete{Hold: command.Hold{ID: plain}}, 1},
		{command.Fail{Hold: command.Hold{ID: 2}}, all},
		{command.Release{Hold: command.Hold{ID: 2}}, all},
		{command.Retry{ID: 1}, all},
		{command.Cancel{ID: 1}, all},
		{command.Cancel{ID: plain}, 1},
		{command.Cancel{ID: gone}, 0},
		{command.Delete{ID: 1}, all},
		{command.Extend{Hold: command.Hold{ID: 2}}, 1},
		{command.Batch{Ops: []command.Command{command.Delete{ID: 1}, command.Fail{Hold: command.Hold{ID: 2}}, command.Cancel{ID: plain}, command.Extend{}}}, 2*all + 2},
		{command.Tick{}, 1},
	} {
		if got := b.m.ReachOf(c.cmd); got != c.want {
			t.Errorf("%T: %d, want %d", c.cmd, got, c.want)
		}
	}
}
