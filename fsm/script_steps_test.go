package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// parent returns the parent that "finalize=claim" and "failure=continue" of a submit ask
// for; the following lines that begin with "step" add its steps.
func (a *args) parent() *record.NewParent {
	p := record.NewParent{ByClaim: a.text("finalize", "auto") == "claim", Continue: a.text("failure", "fail") == "continue"}
	if p.ByClaim || p.Continue {
		return &p
	}
	return nil
}

// addStep adds a step, NAME TYPE after=NAME,... and the options of a task, to what
// was submitted last.
func (s *script) addStep(entry []command.Command, line string) {
	a := parseArgs(s.t, line)
	step := record.NewStep{Name: a.word()}
	after := strings.FieldsFunc(a.text("after", ""), func(r rune) bool { return r == ',' })
	step.Task = a.newTasks()[0]
	a.done()
	last := &entry[len(entry)-1]
	if add, ok := (*last).(command.AddSteps); ok {
		*last = withStep(add, step, after)
		return
	}
	if set, ok := (*last).(command.SetSchedule); ok && set.Schedule.Task.Parent == nil {
		set.Schedule.Task.Parent = &record.NewParent{}
		*last = set
	}
	n := lastSubmitted(*last)
	if n.Parent == nil {
		n.Parent = &record.NewParent{}
	}
	for place := range n.Parent.Steps {
		if slices.Contains(after, n.Parent.Steps[place].Name) {
			step.DependsOn = append(step.DependsOn, uint16(place))
		}
	}
	if len(after) != len(step.DependsOn) {
		s.t.Fatalf("%q: each step comes behind those that it depends on", line)
	}
	n.Parent.Steps = append(n.Parent.Steps, step)
}

// withStep returns the command with a step more, which depends on those that come with it and on
// others.
func withStep(c command.AddSteps, step record.NewStep, after []string) command.AddSteps {
	added := record.AddedStep{NewStep: step}
	for _, name := range after {
		at := slices.IndexFunc(c.Steps, func(s record.AddedStep) bool { return s.Name == name })
		if at < 0 {
			added.After = append(added.After, name)
			continue
		}
		added.DependsOn = append(added.DependsOn, uint16(at))
	}
	slices.Sort(added.DependsOn)
	c.Steps = append(c.Steps, added)
	return c
}

// lastSubmitted returns the task that the command, or its last op, submits last.
func lastSubmitted(c command.Command) *record.NewTask {
	switch c := c.(type) {
	case command.Batch:
		return lastSubmitted(c.Ops[len(c.Ops)-1])
	case command.Complete:
		return &c.Submit[len(c.Submit)-1]
	case command.SetSchedule:
		return &c.Schedule.Task
	}
	tasks := c.(command.Submit).Tasks
	return &tasks[len(tasks)-1]
}

func (a *args) claimFinalization() command.ClaimFinalization {
	return command.ClaimFinalization{ProcessorID: a.word(), ID: a.id(), TimeoutMS: 1000 * a.option("timeout", 30)}
}

func (a *args) finalize() command.Finalize {
	return command.Finalize{
		ProcessorID: a.word(), ID: a.id(), Token: uint64(a.option("token", 0)), Failed: a.text("failed", "") != "",
		Result: a.optional("result"), Error: a.text("error", ""),
	}
}

// describeAnswer shows what is told of a parent.
func describeAnswer(r Result) string {
	p := r.Parent
	var words []string
	add := func(has bool, format string, args ...any) {
		if has {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(p.Outcome != 0, "outcome %d", p.Outcome)
	add(p.Done, "done")
	add(p.AlreadyFinalized, "already finalized")
	add(p.Token != 0, "token %d", p.Token)
	add(p.Holder != "", "held by %s", p.Holder)
	add(p.State != 0, "%v", p.State)
	if p.Steps != nil {
		counts := map[record.Status]int{}
		for _, v := range p.Steps {
			counts[v.Status]++
		}
		for status := record.StatusPending; status <= record.StatusCancelled; status++ {
			add(counts[status] > 0, "%d %v", counts[status], status)
		}
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// placeOf says which step of which parent the task is, or "".
func placeOf(t *record.Task) string {
	s := t.Step()
	if s == nil {
		return ""
	}
	return fmt.Sprintf("/%s of %d", s.Plan.Steps[t.StepPlace()].Name, s.ParentID)
}

// describePlan shows a plan in a line.
func describePlan(p *record.Parent) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "finalized by %s, after a failure %s, steps",
		map[bool]string{false: "itself", true: "claim"}[p.Plan.ByClaim], map[bool]string{false: "fail", true: "continue"}[p.Plan.Continue])
	for _, s := range p.Plan.Steps {
		fmt.Fprintf(&b, " %s", s.Name)
		for i, on := range s.DependsOn {
			fmt.Fprintf(&b, "%s%s", map[bool]string{true: "<", false: ","}[i == 0], p.Plan.Steps[on].Name)
		}
	}
	return b.String()
}

// steps shows the steps of the parent as answers do.
func (s *script) steps(id uint64) {
	for place, v := range s.m.Steps(id) {
		line := fmt.Sprintf("%d %s %v", place, v.Type, v.Status)
		if v.Error != "" {
			line += fmt.Sprintf(" %q", v.Error)
		}
		s.printf("%s", line)
	}
	s.printf("reaches %d", s.m.Reach(id))
}

// finalization shows who claims the parent's finalization, and tried to.
func (s *script) finalization(id uint64) {
	v, ok := s.m.Finalization(id, s.stamp)
	s.printf("%v, claimed by %s for %d ms", ok, cmp.Or(v.ClaimedBy, "nobody"), v.LeftMS)
	for _, x := range v.Attempts {
		s.printf("%s outcome %d, held by %s, %v, at %d", x.ProcessorID, x.Outcome, cmp.Or(x.Holder, "nobody"), x.State, x.At-scriptEpoch)
	}
}

// TestScripts_Restored plays each script on machines that are restored from a snapshot
// before every entry, so that all derived data is rebuilt each time.
func TestScripts_Restored(t *testing.T) {
	t.Parallel()
	replayScripts(t, "", func(s *script, _ []command.Command) {
		saved := s.m.Snapshot()
		defer saved.Release()
		var b bytes.Buffer
		if _, err := saved.WriteTo(&b); err != nil {
			s.t.Fatal(err)
		}
		m, err := ReadSnapshot(&b)
		if err != nil {
			s.t.Fatalf("before entry %d: %v", s.index, err)
		}
		mustCheck(s.t, m)
		if hashOf(m) != saved.Hash() {
			s.t.Fatalf("before entry %d: the restored state has another hash", s.index)
		}
		s.m = m
	})
}

// TestScripts_Undone plays each script; before every entry its commands are tried
// in an atomic batch whose last op is refused, and that leaves no trace.
func TestScripts_Undone(t *testing.T) {
	t.Parallel()
	// What time alone opens, the vain entry tells those who wait, and not the next.
	replayScripts(t, "wakes", func(s *script, commands []command.Command) {
		batch := command.Batch{Atomic: true}
		for _, c := range commands {
			if b, ok := c.(command.Batch); ok {
				batch.Ops = append(batch.Ops, b.Ops...)
			} else if command.IsOp(c) {
				batch.Ops = append(batch.Ops, c)
			}
		}
		s.tryInVain(batch)
	})
}

// tryInVain applies a batch that changes nothing but the clocks and the index.
func (s *script) tryInVain(batch command.Batch) {
	batch.Ops = append(batch.Ops, command.Delete{ID: 1 << 50})
	mustApply(s.t, s.m, s.index, command.AppendEntry(nil, s.stamp, command.Checkpoint{}))
	before := hashOf(s.m)
	a := mustApply(s.t, s.m, s.index, command.AppendEntry(nil, s.stamp, batch))
	if a.Results[0].Code == "" || len(a.Ended) > 0 || a.Events || len(a.Leases) > 0 || a.Requeued+a.Removed > 0 {
		s.t.Fatalf("entry %d: undone, it did %+v", s.index, a)
	}
	mustCheck(s.t, s.m)
	if hashOf(s.m) != before {
		s.t.Fatalf("entry %d: undone, it left traces", s.index)
	}
}

// replayScripts plays all scripts but one, and does something before each entry
// that may change nothing of what comes of it.
func replayScripts(t *testing.T, except string, before func(s *script, commands []command.Command)) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if name == except || name == "rates" { // rates are no part of the state
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newScript(t)
			s.before = func(commands []command.Command) { before(s, commands) }
			if got := s.play(string(text)); got != string(text) {
				t.Errorf("%s: %s", file, firstDifference(string(text), got))
			}
		})
	}
}
