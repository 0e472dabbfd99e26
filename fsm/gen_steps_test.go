package fsm

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// newParent is a task with steps: mostly a few, now and then many.
func (g *generator) newParent() record.NewTask {
	t := g.plainTask()
	t.RunAt, t.DelayMS, t.ExpiresAt, t.Group, t.ShareKey = 0, 0, 0, "", ""
	if g.dice(2) == 0 {
		t.Params, t.Payload = nil, nil
	}
	n, byClaim := 1+g.dice(5), g.dice(2) == 0
	switch {
	case g.dice(24) == 1:
		n = 50
	case g.theme == themeFinalization: // such that end soon, and stay
		n, byClaim = 1+g.dice(2), g.dice(6) > 0
		if g.dice(3) > 0 {
			t.RetentionMS = 0
		}
	}
	t.Replace, t.SignalMS = false, 0
	t.Parent = &record.NewParent{Steps: make([]record.NewStep, n), ByClaim: byClaim, Continue: g.dice(2) == 1}
	for place := range t.Parent.Steps {
		t.Parent.Steps[place] = record.NewStep{Name: fmt.Sprint("s", place), Task: g.step(t.Traceparent)}
	}
	g.depend(t.Parent.Steps)
	return t
}

// step is the task of a step.
func (g *generator) step(traceparent string) record.NewTask {
	t := g.plainTask()
	t.Key, t.UniqueActive, t.UniqueMS, t.KeyOfType, t.Replace, t.RetentionMS, t.Traceparent, t.Attributes = "", false, 0, false, false, 0, traceparent, nil
	if g.theme == themeSteps && g.dice(6) == 0 {
		t.SignalMS = pick[int64](g, 1, 900, 100_000)
	}
	return t
}

// depend lets steps depend on others. Some order goes well with all of it; it is
// mostly not that of the steps.
func (g *generator) depend(steps []record.NewStep) {
	order := make([]uint16, len(steps))
	for k := range order {
		other := g.dice(k + 1)
		order[k], order[other] = order[other], uint16(k)
	}
	shape := g.dice(4)
	for k, place := range order {
		on := map[uint16]bool{}
		switch {
		case k == 0 || shape == 1 && g.dice(2) == 0:
		case shape == 2: // a chain
			on[order[k-1]] = true
		case shape == 3: // the last waits for all
			for _, other := range order[:k] {
				on[other] = k == len(order)-1
			}
		default:
			for range g.dice(3) {
				on[order[g.dice(k)]] = true
			}
		}
		for other := range uint16(len(steps)) {
			if on[other] {
				steps[place].DependsOn = append(steps[place].DependsOn, other)
			}
		}
	}
}

// parent is mostly the id of a parent that is there, more often a running one,
// sometimes of one of the last that were removed, or of no parent.
func (g *generator) parent(m *Machine) uint64 {
	if g.dice(2) == 0 {
		return g.parentThat(m, func(t *record.Task) bool { return t.Status == record.StatusRunning })
	}
	return g.parentThat(m, func(*record.Task) bool { return true })
}

// parentThat returns, mostly, the id of one of the last parents for which is returns true.
func (g *generator) parentThat(m *Machine, is func(t *record.Task) bool) uint64 {
	var parents []uint64
	for id, t := range m.tasks.All() {
		if t.Options != nil && t.Options.Parent != nil && is(t) {
			parents = append(parents, id)
		}
	}
	if len(parents) == 0 || g.dice(8) == 1 {
		return g.id(m)
	}
	slices.Reverse(parents)
	return parents[g.dice(min(len(parents), 6))]
}

// toFinalize tells whether the parent is one that processors ask for: one of them
// did, or it has a step that completed.
func toFinalize(m *Machine, t *record.Task) bool {
	plan := t.Options.Parent.Plan
	ready := t.Options.Parent.Finalization != nil
	for place := range plan.Steps {
		s := m.Get(plan.IDOf(t.ID, place))
		ready = ready || s != nil && s.Status == record.StatusCompleted
	}
	return ready && (t.Status == record.StatusRunning || t.WorkerID != "")
}

// aStep is mostly the id of a step that is there.
func (g *generator) aStep(m *Machine) uint64 {
	var steps []uint64
	for id, t := range m.tasks.All() {
		if t.Options != nil && t.Options.Step != nil {
			steps = append(steps, id)
		}
	}
	if len(steps) == 0 {
		return g.id(m)
	}
	slices.Reverse(steps)
	return steps[g.dice(min(len(steps), 16))]
}

// ofParent is a command about a parent, or one of its steps.
func (g *generator) ofParent(m *Machine) command.Command {
	if g.dice(3) == 0 {
		return g.finalization(m)
	}
	return g.opOfParent(m)
}

// opOfParent is ofParent that a batch may hold.
func (g *generator) opOfParent(m *Machine) command.Command {
	id := g.parent(m)
	if g.dice(3) == 1 {
		id = g.aStep(m)
	}
	ended := func(t *record.Task) bool {
		return t.Status.Ended() && (t.Status != record.StatusCompleted || g.dice(4) == 0)
	}
	switch g.dice(7) {
	case 1, 2:
		id = g.parentThat(m, ended)
		return command.Retry{ID: id, Token: g.tokenOf(m, id), AddAttempts: int32(g.dice(3))}
	case 3:
		return command.Delete{ID: g.parentThat(m, ended)}
	case 4:
		return command.Submit{Tasks: []record.NewTask{g.newParent()}}
	case 5:
		return command.Retry{ID: id, Token: g.tokenOf(m, id), AddAttempts: int32(g.dice(3))}
	}
	return command.Cancel{ID: id}
}

// tokenOf is mostly none.
func (g *generator) tokenOf(m *Machine, id uint64) uint64 {
	if t := m.Get(id); t != nil && g.dice(4) == 1 {
		return t.Token
	}
	return 0
}

// themedSteps is mostly what makes parents go on: claims and ends of steps.
func (g *generator) themedSteps(m *Machine) command.Command {
	h := g.hold(m)
	many := command.ClaimNext{WorkerID: g.worker(), Limit: 5}
	if g.dice(8) == 0 {
		return g.signal(m)
	}
	if g.dice(8) == 0 {
		return g.addSteps(m)
	}
	p := g.patch(m)
	p.ID = g.aStep(m)
	f := g.fail(m)
	f.Permanent = true
	next := command.Complete{Hold: h, Claim: &many}
	return pick[command.Command](g,
		command.Complete{Hold: h, Result: pick(g, nil, []byte(`7`))}, g.complete(m), command.Complete{Hold: h, ResultPayload: []byte{1, 2}},
		next, many, many, many, f, g.opOfParent(m), g.opOfParent(m), g.expire(m), command.Tick{}, p,
	)
}

// addSteps is mostly by the claim of a step: of names that are new, some that are there, and on
// steps that are there or come with it.
func (g *generator) addSteps(m *Machine) command.AddSteps {
	var held []*record.Task
	for _, t := range m.tasks.All() {
		if t.Opts().Step != nil && t.Status == record.StatusClaimed {
			held = append(held, t)
		}
	}
	c := command.AddSteps{Hold: g.hold(m)}
	var names []string
	if len(held) > 0 && g.dice(8) > 0 {
		t := held[g.dice(len(held))]
		c.Hold = command.Hold{ID: t.ID, WorkerID: t.WorkerID, Token: pick(g, t.Token, 0)}
		for _, s := range t.Opts().Step.Plan.Steps {
			names = append(names, s.Name)
		}
	}
	if g.dice(2) == 0 { // the same whenever they are added
		for i := range 1 + g.dice(3) {
			s := record.NewStep{Name: fmt.Sprint("m", i), Task: record.NewTask{Type: "mail", Params: []byte(fmt.Sprint(i))}}
			if i > 0 {
				s.DependsOn = []uint16{uint16(i - 1)}
			}
			c.Steps = append(c.Steps, record.AddedStep{NewStep: s})
		}
		return c
	}
	for i := range 1 + g.dice(3) {
		s := record.AddedStep{NewStep: record.NewStep{Name: fmt.Sprint("n", g.dice(5)*4+i), Task: g.step("")}}
		if g.dice(8) == 0 {
			s.Name = fmt.Sprint("s", i)
		}
		if i > 0 && g.dice(2) == 0 {
			s.DependsOn = []uint16{uint16(g.dice(i))}
		}
		if len(names) > 0 && g.dice(2) == 0 {
			s.After = []string{names[g.dice(len(names))]}
		}
		if g.dice(24) == 0 {
			s.After = []string{"nowhere"}
		}
		c.Steps = append(c.Steps, s)
	}
	return c
}

// finalization is a command of those who finalize: few processors, few parents.
func (g *generator) finalization(m *Machine) command.Command {
	id, by := g.parentThat(m, func(t *record.Task) bool { return toFinalize(m, t) }), g.processor()
	var token uint64
	if t := m.Get(id); t != nil && t.Options != nil && t.Options.Parent != nil && t.Options.Parent.Finalization != nil && g.dice(4) > 0 {
		f := t.Options.Parent.Finalization
		token = f.Token
		if f.ProcessorID != "" {
			by = f.ProcessorID
		}
	}
	if g.dice(3) == 1 { // whose steps have all ended
		id = g.parentThat(m, func(t *record.Task) bool {
			return t.Status == record.StatusRunning && finalizationState(m, t.ID) == record.StateEvaluatingResults
		})
	}
	switch g.dice(10) {
	case 0, 1, 2, 3:
		return command.ClaimFinalization{ID: id, ProcessorID: pick(g, by, g.processor()), TimeoutMS: g.timeout()}
	case 4, 5:
		return command.ExtendFinalization{ID: id, ProcessorID: by, TimeoutMS: pick(g, 0, g.timeout())}
	case 6, 7:
		if g.dice(2) == 0 {
			id = g.parentThat(m, func(t *record.Task) bool { return t.Status.Ended() && t.WorkerID != "" })
			if t := m.Get(id); t != nil && t.WorkerID != "" {
				by = t.WorkerID
			}
		}
		return command.ReleaseFinalization{ID: id, ProcessorID: by}
	}
	c := command.Finalize{ID: id, ProcessorID: pick(g, by, g.processor()), Token: pick(g, 0, token, token, uint64(g.dice(30))), Failed: g.dice(3) == 1}
	if c.Failed {
		c.Error = pick(g, "", "no good")
	} else {
		c.Result = g.bytes(`{"sum":1}`)
	}
	return c
}

func (g *generator) processor() string { return pick(g, "p1", "p2", "p3") }

func (g *generator) timeout() int64 { return pick[int64](g, 30_000, 1000, 3000, 5001, 3_600_000) }

// finalizationEnd returns around when the claim of a parent's finalization is
// over, with or without the margin that it is given.
func (g *generator) finalizationEnd(m *Machine) int64 {
	var ends []int64
	for _, t := range m.tasks.All() {
		if t.Options == nil || t.Options.Parent == nil || t.Options.Parent.Finalization == nil {
			continue
		}
		if f := t.Options.Parent.Finalization; f.ProcessorID != "" {
			ends = append(ends, f.EndU, f.EndU+f.TimeoutMS/2000+2)
		}
	}
	if len(ends) == 0 {
		return 0
	}
	return ends[g.dice(len(ends))]
}
