package sim

import (
	"fmt"

	"github.com/claimq/claimq/jepsen/sim/model"
)

// newTask draws a task to submit. mine: it has a key, of its own at least.
func (w *world) newTask(d *dice, name string, mine bool) model.NewTask {
	t := model.NewTask{
		Kind: w.typeName(d), Body: fmt.Sprintf(`{"n":%q}`, name), Priority: pick[int32](d, 0, 0, 0, 5, -5),
		Max: pick[int32](d, -1, -1, 0, 1, 2), LeaseMS: pick[int64](d, 0, 0, 500, 3000), Opaque: d.in(200),
	}
	switch {
	case !mine:
	case d.in(w.profile.shared): // the key of others too
		t.Key = fmt.Sprintf("key-%d", d.n(w.profile.keys))
		t.Body = fmt.Sprintf(`{"n":"%s"}`, t.Key)
	default: // as the client does of itself
		t.Key = "own-" + name
	}
	w.fillLife(&t, d)
	return t
}

// fillLife gives the task some of what only feature level 2 knows.
func (w *world) fillLife(t *model.NewTask, d *dice) {
	if w.model.Level < model.LifeLevel {
		return
	}
	p := &w.profile.life
	switch {
	case !d.in(p.delay):
	case d.in(500):
		t.DelayMS = d.in1(5000)
	default:
		t.RunAt = w.calendar() + d.n(10_000) - 2000
	}
	if d.in(p.expires) {
		t.ExpiresAt = w.calendar() + d.n(20_000) - 1000
	}
	if d.in(p.backoff) {
		t.Backoff = newBackoff(d)
	}
	if d.in(p.keep) {
		t.KeepMS = newKeep(d)
	}
	if d.in(p.labels) {
		t.Labels = newLabels(d)
	}
	t.Active = t.Key != "" && d.in(p.active)
	t.OfKind = t.Key != "" && p.ofKind > 0 && d.in(p.ofKind)
	if w.profile.groups > 0 && d.in(p.group) {
		t.Group = fmt.Sprintf("g%d", d.n(w.profile.groups))
	}
}

// calendar is about what T says.
func (w *world) calendar() int64 { return max(w.model.T, (epoch+w.now)/millisecond) }

// in1 returns a number in [1, n].
func (d *dice) in1(n int64) int64 { return 1 + d.n(n) }

func newBackoff(d *dice) *model.Backoff {
	b := &model.Backoff{Initial: pick[int64](d, 10, 100, 1000), Factor: pick[int64](d, 1, 2, 3) * 1_000_000, Jitter: pick[int64](d, 0, 200_000, 900_000)}
	b.Most = b.Initial * pick[int64](d, 1, 2, 100)
	return b
}

func newKeep(d *dice) int64 {
	return pick[int64](d, model.KeepNone, model.KeepNone, model.KeepForever, 1, 1000, 60_000)
}

func newLabels(d *dice) []model.Label {
	var labels []model.Label
	for _, name := range []string{"a", "b"} {
		if d.in(500) {
			labels = append(labels, model.Label{Name: name, Value: pick(d, "", "x", "y")})
		}
	}
	return labels
}

// fillClaim draws what a claim of the next task chooses by.
func (w *world) fillClaim(c *model.Command, d *dice) {
	for t := range w.profile.types {
		if d.in(400) {
			c.Types = append(c.Types, "t"+string(rune('a'+t)))
		}
	}
	c.ByCreated, c.Ascending = d.in(300), d.in(400)
	if w.model.Level >= model.ActsLevel || c.Types != nil && w.model.Level >= model.LifeLevel {
		c.Random = d.in(150)
		if d.in(150) {
			c.More = int32(d.n(3))
		}
	}
}

// fillSettle draws what a worker says of its claim.
func (w *world) fillSettle(c *model.Command, kind kind, d *dice, name string) {
	life := w.model.Level >= model.LifeLevel
	switch kind {
	case stepFail:
		c.Verb, c.Reason = model.VerbFail, "no luck in "+name
		if life && d.in(300) {
			c.RetryIn, c.DelayMS = true, pick[int64](d, 0, 1, 500, 5000)
		}
		c.Permanent = life && d.in(100)
	case stepExtend:
		c.Verb, c.LeaseMS = model.VerbExtend, leaseOf(d)
		if life && d.in(200) {
			c.Progress = fmt.Sprintf(`{"at":%q}`, name)
		}
	case stepRelease:
		c.Verb = model.VerbRelease
		if life && d.in(200) {
			c.DelayMS = pick[int64](d, 1, 500, 5000)
		}
	default:
		c.Verb, c.Result, c.Opaque = model.VerbComplete, pick(d, "", `"ok `+name+`"`), d.in(200)
	}
	if kind == stepChain && life {
		w.fillThen(c, d, name)
	}
}

// fillThen draws what a completion does beside.
func (w *world) fillThen(c *model.Command, d *dice, name string) {
	for i := range d.n(3) {
		c.Tasks = append(c.Tasks, w.newWork(d, fmt.Sprintf("%s.then%d", name, i), true))
	}
	if d.in(700) {
		c.Next = &model.Command{Verb: model.VerbClaimNext, Worker: c.Worker, LeaseMS: leaseOf(d), Limit: pick(d, 1, 1, 3)}
		if d.in(300) {
			c.Next.Request = fmt.Sprintf("q-%s.then", name)
		}
		if d.in(30) { // an id used for two requests
			c.Next.Request = fmt.Sprintf("shared-%d", d.n(3))
		}
		w.fillClaim(c.Next, d)
	}
}

// patch draws a patch of some task.
func (w *world) patch(d *dice) *model.Command {
	c := &model.Command{Verb: model.VerbPatch, ID: w.anyID(d)}
	if d.in(500) {
		priority := pick[int32](d, 0, 9, -9)
		c.Set.Priority = &priority
	}
	if d.in(400) {
		at := int64(0)
		if d.in(600) {
			at = w.calendar() + d.n(5000) - 1000
		}
		c.Set.RunAt = &at
	}
	if d.in(300) {
		labels := newLabels(d)
		c.Set.Labels = &labels
	}
	return c
}

// setType draws a change of a type's settings. Limits are lifted again soon.
func (w *world) setType(d *dice) *model.Command {
	c := &model.Command{Verb: model.VerbSetType, Kind: w.typeName(d)}
	if w.model.Level >= model.ActsLevel {
		c.By = pick(d, "", "ann")
	}
	c.Changes = model.TypeChange{
		Paused: d.in(500), Claims: d.in(500), Rate: d.in(400), Lease: d.in(150), Attempts: d.in(150), Backoff: d.in(150), Keep: d.in(150),
	}
	s := &c.Settings
	s.Paused = d.in(200)
	s.Claims = pick[int32](d, 0, 1, 2, 3)
	s.Rate = pick[int64](d, 0, 0, 300_000, 1_000_001, 2_500_000, 20_000_000)
	s.LeaseMS = pick[int64](d, 0, 700, 4000)
	if s.Limited = d.in(600); s.Limited {
		s.Max = pick[int32](d, 0, 1, 2)
	}
	if d.in(600) {
		s.Backoff = newBackoff(d)
	}
	if d.in(700) {
		s.KeepMS = newKeep(d)
	}
	return c
}

// setDefaults draws a change of the server's defaults.
func (w *world) setDefaults(d *dice) *model.Command {
	c := w.setType(d)
	c.Verb, c.Kind = model.VerbSetDefaults, ""
	c.Changes.Paused, c.Changes.Claims, c.Changes.Rate = false, false, false
	c.Settings.Paused, c.Settings.Claims, c.Settings.Rate = false, 0, 0
	return c
}

// stepBatch sends several commands as one.
func (w *world) stepBatch(d *dice, name string) {
	k := w.worker(d)
	c := &model.Command{Verb: model.VerbBatch, Atomic: d.in(500)}
	again := true // all that it does may be repeated
	for i := range 1 + d.n(4) {
		op, safe := w.op(d, k, fmt.Sprintf("%s.%d", name, i))
		again = again && safe
		c.Ops = append(c.Ops, op)
		if c.Atomic && (op.Random || op.Next != nil && op.Next.Random) {
			break // what it took is not told when an op behind it is refused
		}
	}
	var asked *call
	asked = w.call(d, name, c, again, func(r reply, _ bool) {
		if !r.ok {
			return
		}
		w.acked.take(w, c, &r.o.result)
		for i := range r.o.result.Results {
			one, op := &r.o.result.Results[i], c.Ops[i]
			switch {
			case one.Code != "":
			case op.Verb == model.VerbClaimNext:
				k.takeClaims(asked, op, one, r.o.stamp)
			case op.Verb == model.VerbComplete || op.Verb == model.VerbFail || op.Verb == model.VerbRelease:
				k.forget(op.Token)
				if op.Next != nil {
					k.takeClaims(asked, op.Next, one, r.o.stamp)
				}
			}
		}
	})
}

// op draws an op of a batch. safe: it may be repeated.
func (w *world) op(d *dice, k *worker, name string) (op *model.Command, safe bool) {
	switch d.n(10) {
	case 0, 1, 2:
		mine := d.in(800)
		return &model.Command{Verb: model.VerbSubmit, Tasks: []model.NewTask{w.newWork(d, name, mine)}}, mine
	case 3, 4:
		c := &model.Command{Verb: model.VerbClaimNext, Worker: k.name, LeaseMS: leaseOf(d), Limit: pick(d, 1, 1, 2), Request: "q-" + name}
		w.fillClaim(c, d)
		return c, true
	case 5:
		if w.parentsKnown() && d.in(400) {
			return &model.Command{Verb: model.VerbRetry, ID: w.familyID(d), Add: int32(d.n(2))}, false
		}
		return w.retry(d), false
	case 6:
		return &model.Command{Verb: model.VerbCancel, ID: w.familyID(d)}, true
	case 7:
		return &model.Command{Verb: model.VerbDelete, ID: w.familyID(d)}, true
	}
	c := &model.Command{ID: w.anyID(d), Worker: k.name, Token: uint64(d.n(int64(w.model.Tokens) + 2))}
	if len(k.held) > 0 {
		cl := k.held[d.n(int64(len(k.held)))]
		c.ID, c.Token = cl.id, cl.token
	}
	w.fillSettle(c, pick(d, stepComplete, stepChain, stepFail, stepExtend, stepRelease), d, name)
	return c, true
}

// evict logs an eviction of some or of all ended tasks.
func (w *world) evict(d *dice) {
	l := w.leader
	if l == nil || !l.serving || w.model.Level < model.LifeLevel {
		return
	}
	bytes := int64(0)
	if d.in(700) {
		bytes = d.n(l.replica.machine.EndedBytes() + 1)
	}
	l.propose(&proposal{c: &model.Command{Verb: model.VerbEvict, Bytes: bytes}, sentAt: w.now, done: func(outcome) {}})
}
