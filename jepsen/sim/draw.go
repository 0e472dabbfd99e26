package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// newTask draws a task to submit. mine: it has a key, of its own at least.
func (w *world) newTask(d *dice, name string, mine bool) fsm.NewTask {
	t := fsm.NewTask{
		Type: w.typeName(d), Priority: pick[int32](d, 0, 0, 0, 5, -5),
		MaxAttempts: pick[int32](d, fsm.DefaultAttempts, fsm.DefaultAttempts, 0, 1, 2), LeaseMS: pick[int64](d, 0, 0, 500, 3000),
	}
	body, opaque := name, d.in(200)
	switch {
	case !mine:
	case d.in(w.profile.shared): // the key of others too
		t.Key = fmt.Sprintf("key-%d", d.n(w.profile.keys))
		body = t.Key
	default: // as the client does of itself
		t.Key = "own-" + name
	}
	if opaque {
		t.Payload = fmt.Appendf(nil, `{"n":%q}`, body)
	} else {
		t.Params = fmt.Appendf(nil, `{"n":%q}`, body)
	}
	w.fillLife(&t, d)
	return t
}

// fillLife gives the task some of what only feature level 2 knows.
func (w *world) fillLife(t *fsm.NewTask, d *dice) {
	if !w.knows(levelLife) {
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
		t.RetentionMS = newRetention(d)
	}
	if d.in(p.labels) {
		t.Labels = newLabels(d)
	}
	t.UniqueActive = t.Key != "" && d.in(p.active)
	t.KeyOfType = t.Key != "" && p.ofType > 0 && d.in(p.ofType)
	if w.profile.groups > 0 && d.in(p.group) {
		t.Group = fmt.Sprintf("g%d", d.n(w.profile.groups))
	}
}

// knows tells whether the cluster has that feature level now.
func (w *world) knows(level uint32) bool { return w.state.Level() >= level }

// calendar is about what T says.
func (w *world) calendar() int64 { return max(w.state.Stamp().T, (epoch+w.now)/millisecond) }

// in1 returns a number in [1, n].
func (d *dice) in1(n int64) int64 { return 1 + d.n(n) }

func newBackoff(d *dice) *fsm.Backoff {
	b := &fsm.Backoff{InitialMS: pick[int64](d, 10, 100, 1000), Factor: pick[int64](d, 1, 2, 3) * 1_000_000, Jitter: pick[int64](d, 0, 200_000, 900_000)}
	b.MaxMS = b.InitialMS * pick[int64](d, 1, 2, 100)
	return b
}

func newRetention(d *dice) int64 {
	return pick[int64](d, fsm.KeepNone, fsm.KeepNone, fsm.KeepForever, 1, 1000, 60_000)
}

func newLabels(d *dice) []fsm.Label {
	var labels []fsm.Label
	for _, name := range []string{"a", "b"} {
		if d.in(500) {
			labels = append(labels, fsm.Label{Name: name, Value: pick(d, "", "x", "y")})
		}
	}
	return labels
}

// fillClaim draws what a claim of the next task chooses by.
func (w *world) fillClaim(c *command.ClaimNext, d *dice) {
	for t := range w.profile.types {
		if d.in(400) {
			c.Types = append(c.Types, "t"+string(rune('a'+t)))
		}
	}
	if d.in(300) {
		c.SortBy = command.SortCreatedAt
	}
	c.Ascending = d.in(400)
	if w.knows(levelActs) || c.Types != nil && w.knows(levelLife) {
		if d.in(150) {
			c.SortBy = command.SortRandom
		}
		if d.in(150) {
			c.MoreAttempts = int32(d.n(3))
		}
	}
}

// how is how a worker settles a claim, or extends it.
type how uint8

const (
	complete how = iota
	chain        // completes with follow-ups and the next claim
	fail
	extend
	release
)

// settle draws what a worker says of its claim.
func (w *world) settle(how how, h command.Hold, d *dice, name string) command.Command {
	life := w.knows(levelLife)
	switch how {
	case fail:
		c := command.Fail{Hold: h, Error: "no luck in " + name}
		if life && d.in(300) {
			c.RetryIn, c.RetryInMS = true, pick[int64](d, 0, 1, 500, 5000)
		}
		c.Permanent = life && d.in(100)
		return c
	case extend:
		c := command.Extend{Hold: h, LeaseMS: leaseOf(d)}
		if life && d.in(200) {
			c.Progress = fmt.Appendf(nil, `{"at":%q}`, name)
		}
		return c
	case release:
		c := command.Release{Hold: h}
		if life && d.in(200) {
			c.DelayMS = pick[int64](d, 1, 500, 5000)
		}
		return c
	default:
		return w.complete(how, h, d, name)
	}
}

func (w *world) complete(how how, h command.Hold, d *dice, name string) command.Complete {
	c := command.Complete{Hold: h}
	switch result := fmt.Appendf(nil, `"ok %s"`, name); {
	case d.in(500):
	case d.in(200):
		c.ResultPayload = result
	default:
		c.Result = result
	}
	if how != chain || !w.knows(levelLife) {
		return c
	}
	for i := range d.n(3) {
		c.Submit = append(c.Submit, w.newWork(d, fmt.Sprintf("%s.then%d", name, i), true))
	}
	if d.in(700) {
		c.Claim = &command.ClaimNext{WorkerID: h.WorkerID, LeaseMS: leaseOf(d), Limit: pick[int32](d, 1, 1, 3)}
		if d.in(300) {
			c.Claim.RequestID = fmt.Sprintf("q-%s.then", name)
		}
		if d.in(30) { // an id used for two requests
			c.Claim.RequestID = fmt.Sprintf("shared-%d", d.n(3))
		}
		w.fillClaim(c.Claim, d)
	}
	return c
}

// patch draws a patch of the task.
func (w *world) patch(d *dice, id uint64) command.Patch {
	c := command.Patch{ID: id, SetPriority: d.in(500), SetRunAt: d.in(400), SetLabels: d.in(300)}
	if c.SetPriority {
		c.Priority = pick[int32](d, 0, 9, -9)
	}
	if c.SetRunAt && d.in(600) {
		c.RunAt = w.calendar() + d.n(5000) - 1000
	}
	if c.SetLabels {
		c.Labels = newLabels(d)
	}
	return c
}

// setType draws a change of a type's settings. Limits are lifted again soon.
func (w *world) setType(d *dice) command.SetType {
	c := command.SetType{Type: w.typeName(d)}
	if w.knows(levelActs) {
		c.By = pick(d, "", "ann")
	}
	s := &c.Settings
	set := func(field fsm.TypeFields, perMille int64, draw func()) {
		if d.in(perMille) {
			c.Set |= field
			draw()
		}
	}
	set(fsm.TypePaused, 500, func() { s.Paused = d.in(200) })
	set(fsm.TypeMaxClaimed, 500, func() { s.MaxClaimed = pick[int32](d, 0, 1, 2, 3) })
	set(fsm.TypeRateLimit, 400, func() { s.RateLimit = pick[int64](d, 0, 0, 300_000, 1_000_001, 2_500_000, 20_000_000) })
	set(fsm.TypeLease, 150, func() { s.LeaseMS = pick[int64](d, 0, 700, 4000) })
	set(fsm.TypeMaxAttempts, 150, func() {
		if s.LimitSet = d.in(600); s.LimitSet {
			s.MaxAttempts = pick[int32](d, 0, 1, 2)
		}
	})
	set(fsm.TypeBackoff, 150, func() { s.Backoff = pick(d, nil, newBackoff(d)) })
	set(fsm.TypeRetention, 150, func() { s.RetentionMS = pick(d, 0, newRetention(d)) })
	return c
}

// setTypeOrDefaults draws a change of a type's settings, or of the server's defaults.
func (w *world) setTypeOrDefaults(d *dice) command.Command {
	if !d.in(250) || !w.knows(levelActs) {
		return w.setType(d)
	}
	c := w.setType(d)
	return command.SetDefaults{Set: c.Set & command.DefaultFields, Defaults: fsm.DefaultsOf(&c.Settings), By: c.By}
}

// batch sends several commands as one.
func (w *world) batch(d *dice, name string) {
	k := w.worker(d)
	c := command.Batch{Atomic: d.in(500)}
	again := true // all that it does may be repeated
	for i := range 1 + d.n(4) {
		op, safe := w.op(d, k, fmt.Sprintf("%s.%d", name, i))
		again = again && safe
		if fail, ok := op.(command.Fail); ok && c.Atomic {
			fail.RetryIn = true // the jitter of a backoff is not told when an op behind it is refused
			op = fail
		}
		c.Ops = append(c.Ops, op)
		if c.Atomic && takesAny(op) {
			break // what it took is not told when an op behind it is refused
		}
	}
	w.call(d, name, c, again, func(asked *call, r reply, _ bool) {
		if !r.ok {
			return
		}
		for i := range r.o.result.Results {
			if one := &r.o.result.Results[i]; one.Code == "" {
				k.takeSettled(asked, c.Ops[i], one, r.o.stamp)
			}
		}
	})
}

// takesAny tells whether the command claims at random.
func takesAny(c command.Command) bool {
	switch c := c.(type) {
	case command.ClaimNext:
		return c.SortBy == command.SortRandom
	case command.Complete:
		return c.Claim != nil && c.Claim.SortBy == command.SortRandom
	}
	return false
}

// op draws an op of a batch. safe: it may be repeated.
func (w *world) op(d *dice, k *worker, name string) (op command.Command, safe bool) {
	switch d.n(10) {
	case 0, 1, 2:
		mine := d.in(800)
		return command.Submit{Tasks: []fsm.NewTask{w.newWork(d, name, mine)}}, mine
	case 3, 4:
		c := command.ClaimNext{WorkerID: k.name, LeaseMS: leaseOf(d), Limit: pick[int32](d, 1, 1, 2), RequestID: "q-" + name}
		w.fillClaim(&c, d)
		return c, true
	case 5:
		if w.parentsKnown() && d.in(400) {
			return command.Retry{ID: w.familyID(d), AddAttempts: int32(d.n(2))}, false
		}
		return w.retry(d), false
	case 6:
		return command.Cancel{ID: w.familyID(d)}, true
	case 7:
		return command.Delete{ID: w.familyID(d)}, true
	}
	h := command.Hold{ID: w.anyID(d), WorkerID: k.name, Token: uint64(d.n(int64(w.tokens) + 2))}
	if len(k.held) > 0 {
		h = k.hold(k.held[d.n(int64(len(k.held)))])
	}
	return w.settle(pick(d, complete, chain, fail, extend, release), h, d, name), true
}

// evict logs an eviction of some or of all ended tasks.
func (w *world) evict(_ *replica, d *dice) {
	l := w.leader
	if l == nil || !l.serving || !w.knows(levelLife) {
		return
	}
	bytes := int64(0)
	if d.in(700) {
		bytes = d.n(l.replica.machine.EndedBytes() + 1)
	}
	l.decide(command.Evict{Bytes: bytes}, nil)
}
