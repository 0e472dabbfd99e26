package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// The commands of a run are drawn simply, and cover a bit of everything: the logs that package
// fsm's tests draw are meant to hit rare cases in the rules.

// typeName draws the name of a type in this world.
func (w *world) typeName(d *dice) string { return "t" + string(rune('a'+d.n(w.profile.types))) }

// anyID returns the id of a submitted task, mostly a recent one, or an id that never existed.
func (w *world) anyID(d *dice) uint64 {
	n := int64(w.ids) + 1
	if d.in(700) {
		return uint64(max(n-d.n(12), 1))
	}
	return uint64(1 + d.n(n))
}

func leaseOf(d *dice) int64 { return pick[int64](d, 0, 0, 100, 250, 999, 1999, 1999, 5000, 20_000) }

// calendar returns approximately T.
func (w *world) calendar() int64 { return max(w.state.Stamp().T, (epoch+w.now)/millisecond) }

// some calls some of these.
func (w *world) some(d *dice, of ...func()) {
	for _, one := range of {
		if d.in(w.profile.options) {
			one()
		}
	}
}

// newTask draws a task to submit, in some worlds with steps. mine: it must have a key that is
// unique to it.
func (w *world) newTask(d *dice, name string, mine bool) fsm.NewTask {
	t := w.newStep(d, name)
	switch {
	case !mine:
	case d.in(w.profile.shared): // a key that others use, too
		t.Key = fmt.Sprintf("key-%d", d.n(w.profile.keys))
		t.Params, t.Payload = fmt.Appendf(nil, `{"n":%q}`, t.Key), nil
	default: // as the client does by itself
		t.Key = "own-" + name
	}
	w.some(d,
		func() { t.RetentionMS = newRetention(d) },
		func() { t.UniqueActive = t.Key != "" },
		func() { t.KeyOfType = t.Key != "" })
	if d.in(w.profile.parents) {
		t.RunAt, t.DelayMS, t.ExpiresAt, t.Group = 0, 0, 0, ""
		t.Parent = w.newSteps(d, name)
	}
	return t
}

// newStep draws the fields that a task and a step have in common.
func (w *world) newStep(d *dice, name string) fsm.NewTask {
	t := fsm.NewTask{
		Type: w.typeName(d), Priority: pick[int32](d, 0, 0, 0, 5, -5),
		MaxAttempts: pick[int32](d, fsm.DefaultAttempts, fsm.DefaultAttempts, 0, 1, 2), LeaseMS: pick[int64](d, 0, 0, 500, 3000),
	}
	if body := fmt.Appendf(nil, `{"n":%q}`, name); d.in(200) {
		t.Payload = body
	} else {
		t.Params = body
	}
	w.some(d,
		func() { t.DelayMS = 1 + d.n(5000) },
		func() { t.DelayMS, t.RunAt = 0, w.calendar()+d.n(10_000)-2000 },
		func() { t.ExpiresAt = w.calendar() + d.n(20_000) - 1000 },
		func() { t.Backoff = w.newBackoff(d) },
		func() { t.Labels = newLabels(d) },
		func() { t.Group = fmt.Sprintf("g%d", d.n(3)) })
	return t
}

// newSteps draws the steps of a parent: each depends on some of the earlier ones.
func (w *world) newSteps(d *dice, name string) *fsm.NewParent {
	p := &fsm.NewParent{Steps: make([]fsm.NewStep, 1+d.n(5)), ByClaim: d.in(500), Continue: d.in(400)}
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Name = fmt.Sprintf("s%d", i)
		s.Task = w.newStep(d, name+"."+s.Name)
		for before := range uint16(i) {
			if d.in(400) {
				s.DependsOn = append(s.DependsOn, before)
			}
		}
	}
	return p
}

// newBackoff draws a backoff, with jitter only without steps: the model cannot know the jitter
// of a step that is cancelled with its parent in the same entry.
func (w *world) newBackoff(d *dice) *fsm.Backoff {
	b := &fsm.Backoff{InitialMS: pick[int64](d, 10, 100, 1000), Factor: pick[int64](d, 1, 2, 3) * 1_000_000}
	b.MaxMS = b.InitialMS * pick[int64](d, 1, 2, 100)
	if w.profile.parents == 0 {
		b.Jitter = pick[int64](d, 0, 200_000, 900_000)
	}
	return b
}

func newRetention(d *dice) int64 {
	return pick[int64](d, fsm.KeepNone, fsm.KeepNone, fsm.KeepForever, 1, 1000, 60_000)
}

func newLabels(d *dice) []fsm.Label {
	return pick(d, nil, []fsm.Label{{Name: "a", Value: "x"}}, []fsm.Label{{Name: "a", Value: "y"}, {Name: "b", Value: ""}})
}

// claimNext draws a claim of the next task, or of some.
func (w *world) claimNext(d *dice, workerID, request string) command.ClaimNext {
	c := command.ClaimNext{WorkerID: workerID, LeaseMS: leaseOf(d), Limit: pick[int32](d, 1, 1, 1, 3), RequestID: request}
	w.some(d,
		func() { c.Types = []string{w.typeName(d)} },
		func() { c.SortBy = command.SortCreatedAt },
		func() { c.Ascending = c.SortBy == command.SortCreatedAt },
		func() { c.MoreAttempts = int32(d.n(3)) },
		func() { c.SortBy, c.Ascending = command.SortRandom, false })
	return c
}

// settle draws a worker's command about its claim: its end, or that it goes on.
func (w *world) settle(d *dice, h command.Hold, name string) command.Command {
	switch d.n(16) {
	case 0, 1:
		c := command.Fail{Hold: h, Error: "no luck in " + name}
		w.some(d,
			func() { c.RetryIn, c.RetryInMS = true, pick[int64](d, 0, 1, 500, 5000) },
			func() { c.Permanent = true })
		return c
	case 2, 3, 4, 5:
		c := command.Extend{Hold: h, LeaseMS: leaseOf(d)}
		w.some(d, func() { c.Progress = fmt.Appendf(nil, `{"at":%q}`, name) })
		return c
	case 6, 7:
		c := command.Release{Hold: h}
		w.some(d,
			func() { c.DelayMS = pick[int64](d, 1, 500, 5000) },
			func() { c.Answer = command.FirstAnswer })
		return c
	}
	c := command.Complete{Hold: h}
	switch result := fmt.Appendf(nil, `"ok %s"`, name); d.n(5) {
	case 0, 1:
		c.Result = result
	case 2:
		c.ResultPayload = result
	}
	w.some(d,
		func() { c.Submit = []fsm.NewTask{w.newTask(d, name+".then", true)} },
		func() {
			next := w.claimNext(d, h.WorkerID, "q-"+name+".then")
			c.Claim = &next
		})
	return c
}

// patch draws a patch of a task.
func (w *world) patch(d *dice) command.Command {
	c := command.Patch{ID: w.anyID(d), SetPriority: d.in(500), SetRunAt: d.in(400), SetLabels: d.in(300)}
	if c.SetPriority {
		c.Priority = pick[int32](d, 0, 9, -9)
	}
	if c.SetRunAt {
		c.RunAt = pick(d, 0, w.calendar()+d.n(5000)-1000)
	}
	if c.SetLabels {
		c.Labels = newLabels(d)
	}
	return c
}

// setType draws a change of a type's settings, or of the server's defaults. Limits are soon
// lifted again.
func (w *world) setType(d *dice) command.Command {
	c := command.SetType{Type: w.typeName(d)}
	s := &c.Settings
	for _, set := range []struct {
		field fsm.TypeFields
		draw  func()
	}{
		{fsm.TypePaused, func() { s.Paused = d.in(200) }},
		{fsm.TypeMaxClaimed, func() { s.MaxClaimed = pick[int32](d, 0, 1, 2, 3) }},
		{fsm.TypeRateLimit, func() { s.RateLimit = pick[int64](d, 0, 0, 300_000, 1_000_001, 2_500_000, 20_000_000) }},
		{fsm.TypeLease, func() { s.LeaseMS = pick[int64](d, 0, 700, 4000) }},
		{fsm.TypeMaxAttempts, func() { s.LimitSet, s.MaxAttempts = true, pick[int32](d, 0, 1, 2) }},
		{fsm.TypeBackoff, func() { s.Backoff = pick(d, nil, w.newBackoff(d)) }},
		{fsm.TypeRetention, func() { s.RetentionMS = pick(d, 0, newRetention(d)) }},
	} {
		if d.in(300) {
			c.Set |= set.field
			set.draw()
		}
	}
	if d.in(200) {
		return command.SetDefaults{Set: c.Set & command.DefaultFields, Defaults: fsm.DefaultsOf(s)}
	}
	return c
}

// act draws an action on the tasks that match a filter now; they may change before it is done.
func (w *world) act(d *dice) command.Command {
	c := command.Act{Action: pick(d, command.ActionRetry, command.ActionCancel, command.ActionDelete)}
	c.Filter.Status = pick(d, 0, fsm.StatusPending, fsm.StatusScheduled, fsm.StatusClaimed, fsm.StatusFailed, fsm.StatusCompleted, fsm.StatusCancelled, fsm.StatusBlocked, fsm.StatusRunning)
	w.some(d,
		func() { c.Filter.Type = w.typeName(d) },
		func() { c.Filter.Labels = newLabels(d) },
		func() { c.Filter.CreatedAfter = w.calendar() - d.n(20_000) })
	for _, t := range w.tasks() {
		if (c.Filter.Matches(t) || d.in(30)) && len(c.IDs) < 40 {
			c.IDs = append(c.IDs, t.ID)
		}
	}
	if len(c.IDs) == 0 {
		c.IDs = []uint64{1}
	}
	return c
}

// finalization draws a processor's command about a parent, mostly about a running one.
func (w *world) finalization(d *dice) command.Command {
	running := slices.DeleteFunc(w.tasks(), func(t *fsm.Task) bool { return t.Status != fsm.StatusRunning })
	id, by, token := w.anyID(d), pick(d, "p1", "p2", "p3"), uint64(0)
	if n := int64(len(running)); n > 0 && d.in(900) {
		t := running[max(n-1-d.n(4), 0)]
		id = t.ID
		if f := t.Opts().Parent.Finalization; f != nil && f.ProcessorID != "" && d.in(700) {
			by, token = f.ProcessorID, f.Token
		}
	}
	timeout := pick[int64](d, 1000, 2000, 20_000)
	switch d.n(6) {
	case 0, 1, 2:
		return command.ClaimFinalization{ID: id, ProcessorID: by, TimeoutMS: timeout}
	case 3:
		return command.ExtendFinalization{ID: id, ProcessorID: by, TimeoutMS: timeout}
	case 4:
		return command.ReleaseFinalization{ID: id, ProcessorID: by}
	}
	if d.in(300) {
		return command.Finalize{ID: id, ProcessorID: by, Token: token, Failed: true, Error: "no good"}
	}
	return command.Finalize{ID: id, ProcessorID: by, Token: token, Result: []byte(`"good"`)}
}

// schedule draws a schedule to set, or one to delete.
func (w *world) schedule(d *dice) command.Command {
	s := fsm.Schedule{Name: fmt.Sprintf("s%d", 1+d.n(3)), Task: w.newStep(d, "tick")}
	if d.in(150) {
		return command.DeleteSchedule{Name: s.Name}
	}
	s.Task.RunAt, s.Task.ExpiresAt = 0, 0
	s.EveryMS, s.OverlapAllow = pick[int64](d, 1000, 5000, 30_000), d.in(400)
	if s.EveryMS == 1000 && w.profile.long {
		s.OverlapAllow = false // otherwise there would be hundreds of tasks
	}
	if d.in(600) {
		s.EveryMS, s.Cron = 0, pick(d, "* * * * *", "* * * * *", "*/5 * * * *")
	}
	s.CatchUpSkip, s.Paused = d.in(300), d.in(100)
	return command.SetSchedule{Schedule: s}
}
