package sim

import "fmt"

// newTask draws a task to submit. mine: it has a key, of its own at least.
func (w *world) newTask(d *dice, name string, mine bool) newTask {
	t := newTask{
		kind: w.typeName(d), body: fmt.Sprintf(`{"n":%q}`, name), priority: pick[int32](d, 0, 0, 0, 5, -5),
		max: pick[int32](d, -1, -1, 0, 1, 2), leaseMS: pick[int64](d, 0, 0, 500, 3000), opaque: d.in(200),
	}
	switch {
	case !mine:
	case d.in(w.profile.shared): // the key of others too
		t.key = fmt.Sprintf("key-%d", d.n(w.profile.keys))
		t.body = fmt.Sprintf(`{"n":"%s"}`, t.key)
	default: // as the client does of itself
		t.key = "own-" + name
	}
	w.fillLife(&t, d)
	return t
}

// fillLife gives the task some of what only feature level 2 knows.
func (w *world) fillLife(t *newTask, d *dice) {
	if w.model.level < lifeLevel {
		return
	}
	p := &w.profile.life
	switch {
	case !d.in(p.delay):
	case d.in(500):
		t.delayMS = d.in1(5000)
	default:
		t.runAt = w.calendar() + d.n(10_000) - 2000
	}
	if d.in(p.expires) {
		t.expiresAt = w.calendar() + d.n(20_000) - 1000
	}
	if d.in(p.backoff) {
		t.backoff = newBackoff(d)
	}
	if d.in(p.keep) {
		t.keepMS = newKeep(d)
	}
	if d.in(p.labels) {
		t.labels = newLabels(d)
	}
	t.active = t.key != "" && d.in(p.active)
	t.ofKind = t.key != "" && p.ofKind > 0 && d.in(p.ofKind)
	if w.profile.groups > 0 && d.in(p.group) {
		t.group = fmt.Sprintf("g%d", d.n(w.profile.groups))
	}
}

// calendar is about what T says.
func (w *world) calendar() int64 { return max(w.model.t, (epoch+w.now)/millisecond) }

// in1 returns a number in [1, n].
func (d *dice) in1(n int64) int64 { return 1 + d.n(n) }

func newBackoff(d *dice) *backoff {
	b := &backoff{initial: pick[int64](d, 10, 100, 1000), factor: pick[int64](d, 1, 2, 3) * 1_000_000, jitter: pick[int64](d, 0, 200_000, 900_000)}
	b.most = b.initial * pick[int64](d, 1, 2, 100)
	return b
}

func newKeep(d *dice) int64 { return pick[int64](d, keepNone, keepNone, keepForever, 1, 1000, 60_000) }

func newLabels(d *dice) []label {
	var labels []label
	for _, name := range []string{"a", "b"} {
		if d.in(500) {
			labels = append(labels, label{name, pick(d, "", "x", "y")})
		}
	}
	return labels
}

// fillClaim draws what a claim of the next task chooses by.
func (w *world) fillClaim(c *command, d *dice) {
	for t := range w.profile.types {
		if d.in(400) {
			c.types = append(c.types, "t"+string(rune('a'+t)))
		}
	}
	c.byCreated, c.ascending = d.in(300), d.in(400)
	if c.types != nil && w.model.level >= lifeLevel {
		c.random = d.in(150)
		if d.in(150) {
			c.more = int32(d.n(3))
		}
	}
}

// fillSettle draws what a worker says of its claim.
func (w *world) fillSettle(c *command, kind kind, d *dice, name string) {
	life := w.model.level >= lifeLevel
	switch kind {
	case stepFail:
		c.verb, c.reason = verbFail, "no luck in "+name
		if life && d.in(300) {
			c.retryIn, c.delayMS = true, pick[int64](d, 0, 1, 500, 5000)
		}
		c.permanent = life && d.in(100)
	case stepExtend:
		c.verb, c.leaseMS = verbExtend, leaseOf(d)
		if life && d.in(200) {
			c.progress = fmt.Sprintf(`{"at":%q}`, name)
		}
	case stepRelease:
		c.verb = verbRelease
		if life && d.in(200) {
			c.delayMS = pick[int64](d, 1, 500, 5000)
		}
	default:
		c.verb, c.result, c.opaque = verbComplete, pick(d, "", `"ok `+name+`"`), d.in(200)
	}
	if kind == stepChain && life {
		w.fillThen(c, d, name)
	}
}

// fillThen draws what a completion does beside.
func (w *world) fillThen(c *command, d *dice, name string) {
	for i := range d.n(3) {
		c.tasks = append(c.tasks, w.newWork(d, fmt.Sprintf("%s.then%d", name, i), true))
	}
	if d.in(700) {
		c.next = &command{verb: verbClaimNext, worker: c.worker, leaseMS: leaseOf(d), limit: pick(d, 1, 1, 3)}
		if d.in(300) {
			c.next.request = fmt.Sprintf("q-%s.then", name)
		}
		if d.in(30) { // an id used for two requests
			c.next.request = fmt.Sprintf("shared-%d", d.n(3))
		}
		w.fillClaim(c.next, d)
	}
}

// patch draws a patch of some task.
func (w *world) patch(d *dice) *command {
	c := &command{verb: verbPatch, id: w.anyID(d)}
	if d.in(500) {
		priority := pick[int32](d, 0, 9, -9)
		c.set.priority = &priority
	}
	if d.in(400) {
		at := int64(0)
		if d.in(600) {
			at = w.calendar() + d.n(5000) - 1000
		}
		c.set.runAt = &at
	}
	if d.in(300) {
		labels := newLabels(d)
		c.set.labels = &labels
	}
	return c
}

// setType draws a change of a type's settings. Limits are lifted again soon.
func (w *world) setType(d *dice) *command {
	c := &command{verb: verbSetType, kind: w.typeName(d)}
	if w.model.level >= actsLevel {
		c.by = pick(d, "", "ann")
	}
	c.changes = typeChange{
		paused: d.in(500), claims: d.in(500), rate: d.in(400), lease: d.in(150), attempts: d.in(150), backoff: d.in(150), keep: d.in(150),
	}
	s := &c.settings
	s.paused = d.in(200)
	s.claims = pick[int32](d, 0, 1, 2, 3)
	s.rate = pick[int64](d, 0, 0, 300_000, 1_000_001, 2_500_000, 20_000_000)
	s.leaseMS = pick[int64](d, 0, 700, 4000)
	if s.limited = d.in(600); s.limited {
		s.max = pick[int32](d, 0, 1, 2)
	}
	if d.in(600) {
		s.backoff = newBackoff(d)
	}
	if d.in(700) {
		s.keepMS = newKeep(d)
	}
	return c
}

// setDefaults draws a change of the server's defaults.
func (w *world) setDefaults(d *dice) *command {
	c := w.setType(d)
	c.verb, c.kind = verbSetDefaults, ""
	c.changes.paused, c.changes.claims, c.changes.rate = false, false, false
	c.settings.paused, c.settings.claims, c.settings.rate = false, 0, 0
	return c
}

// stepBatch sends several commands as one.
func (w *world) stepBatch(d *dice, name string) {
	k := w.worker(d)
	c := &command{verb: verbBatch, atomic: d.in(500)}
	again := true // all that it does may be repeated
	for i := range 1 + d.n(4) {
		op, safe := w.op(d, k, fmt.Sprintf("%s.%d", name, i))
		again = again && safe
		c.ops = append(c.ops, op)
		if c.atomic && (op.random || op.next != nil && op.next.random) {
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
			one, op := &r.o.result.Results[i], c.ops[i]
			switch {
			case one.Code != "":
			case op.verb == verbClaimNext:
				k.takeClaims(asked, op, one, r.o.stamp)
			case op.verb == verbComplete || op.verb == verbFail || op.verb == verbRelease:
				k.forget(op.token)
				if op.next != nil {
					k.takeClaims(asked, op.next, one, r.o.stamp)
				}
			}
		}
	})
}

// op draws an op of a batch. safe: it may be repeated.
func (w *world) op(d *dice, k *worker, name string) (op *command, safe bool) {
	switch d.n(10) {
	case 0, 1, 2:
		mine := d.in(800)
		return &command{verb: verbSubmit, tasks: []newTask{w.newWork(d, name, mine)}}, mine
	case 3, 4:
		c := &command{verb: verbClaimNext, worker: k.name, leaseMS: leaseOf(d), limit: pick(d, 1, 1, 2), request: "q-" + name}
		w.fillClaim(c, d)
		return c, true
	case 5:
		if w.parentsKnown() && d.in(400) {
			return &command{verb: verbRetry, id: w.familyID(d), add: int32(d.n(2))}, false
		}
		return w.retry(d), false
	case 6:
		return &command{verb: verbCancel, id: w.familyID(d)}, true
	case 7:
		return &command{verb: verbDelete, id: w.familyID(d)}, true
	}
	c := &command{id: w.anyID(d), worker: k.name, token: uint64(d.n(int64(w.model.tokens) + 2))}
	if len(k.held) > 0 {
		cl := k.held[d.n(int64(len(k.held)))]
		c.id, c.token = cl.id, cl.token
	}
	w.fillSettle(c, pick(d, stepComplete, stepChain, stepFail, stepExtend, stepRelease), d, name)
	return c, true
}

// evict logs an eviction of some or of all ended tasks.
func (w *world) evict(d *dice) {
	l := w.leader
	if l == nil || !l.serving || w.model.level < lifeLevel {
		return
	}
	bytes := int64(0)
	if d.in(700) {
		bytes = d.n(l.replica.machine.EndedBytes() + 1)
	}
	l.propose(&proposal{c: &command{verb: verbEvict, bytes: bytes}, sentAt: w.now, done: func(outcome) {}})
}
