package sim

import (
	"github.com/claimq/claimq/fsm"
)

// Bounds of guarantee 5 of docs/guarantees.md.
const (
	requeueMax       = second     // an ended lease is requeued within
	changeAllowance  = 6 * second // what each change of leader may add
	stalledAfter     = 200 * millisecond
	latePauseAllowed = 1100 * millisecond // after the leader stood still it waits for extends
)

// watch checks what must hold whatever the model says. It knows the results of
// the entries, in order, and real time.
type watch struct {
	tasks     map[uint64]*watchedTask
	lastToken uint64
	keys      map[string]uint64 // key to the task that has it
	requests  map[string]*watchedRequest
	byToken   map[uint64]*watchedRequest
	settled   map[uint64]verb  // by token: what ended the claim
	expiredAt map[uint64]int64 // by token: when the expiry was decided
	believed  map[uint64]int64 // by token: until when the worker takes it for its own, in real time
	live      []*watchedTask

	// served is how long a leader has served that could commit, and what it was
	// when the sweep looked last.
	served, swept int64
	waitUntil     int64 // the leader stood still: it waits for extends
}

// watchedTask is what is known of a task.
type watchedTask struct {
	id      uint64
	key     string
	leaseMS int64

	holder  uint64 // token of the live claim, 0 if none
	worker  string
	seq     uint32
	claimMS int64
	// notBefore is when the lease may end at the earliest, in real time; due when
	// it has ended at the latest, by served time; changes how many changes of
	// leader there had been then.
	notBefore, due int64
	changes        int
}

// watchedRequest is the first answer to a claim request.
type watchedRequest struct {
	claims []claimOf
	live   int
	endedU int64
}

func newWatch() *watch {
	return &watch{
		tasks: map[uint64]*watchedTask{}, keys: map[string]uint64{},
		requests: map[string]*watchedRequest{}, byToken: map[uint64]*watchedRequest{},
		settled: map[uint64]verb{}, expiredAt: map[uint64]int64{}, believed: map[uint64]int64{},
	}
}

// entry looks at the results of an entry, once, when the first replica has
// applied it.
func (o *watch) entry(w *world, e *entry, applied *fsm.Applied) {
	for i, c := range e.commands {
		r := &applied.Results[i]
		w.mix(uint64(c.verb), uint64(len(r.Code)), uint64(r.Expired), uint64(len(r.Claims)))
		if r.Task != nil {
			w.mix(r.Task.ID, r.Task.Token, uint64(r.Task.Status))
		}
		if w.tracing() {
			w.say("  entry %d: %v -> %s", e.index, c, describe(r))
		}
		o.command(w, e, c, e.sentAt[i], r, applied.Stamp)
	}
}

func (o *watch) command(w *world, e *entry, c *command, sentAt int64, r *fsm.Result, now fsm.Stamp) {
	switch c.verb {
	case verbSubmit:
		for i := range c.tasks {
			o.submit(w, &c.tasks[i], &r.Submitted[i])
		}
	case verbClaimNext, verbClaimTask:
		o.claims(w, c, sentAt, r, now)
	case verbComplete, verbFail, verbRelease:
		o.settle(w, c, r, now)
	case verbExtend:
		if r.Code == "" {
			t := o.held(w, c)
			o.extended(w, t, c.leaseMS, sentAt, r.Task, now)
		}
	case verbRetry:
		if t := o.tasks[c.id]; t != nil && r.Code == "" && !r.Repeated && t.holder != 0 {
			o.end(t, now)
		}
	case verbDelete:
		if r.Code == "" {
			t := o.tasks[c.id]
			if t == nil || t.holder != 0 {
				w.fail("delete of task %d was accepted: it is gone, or held", c.id)
				return
			}
			delete(o.tasks, c.id)
			if t.key != "" {
				delete(o.keys, t.key)
			}
		}
	case verbExpire:
		o.expire(w, c, sentAt, r, now)
	case verbTick, verbCheckpoint, verbSetNode, verbSetLevel:
	}
}

func (o *watch) submit(w *world, n *newTask, s *fsm.Submitted) {
	id := s.Task.ID
	has, taken := o.keys[n.key]
	switch {
	case !s.Created && (!taken || has != id):
		w.fail("submit with key %q was answered with task %d, the key leads to %d", n.key, id, has)
	case s.Created && taken:
		w.fail("submit with key %q made task %d, the key has task %d", n.key, id, has)
	case s.Created:
		if o.tasks[id] != nil {
			w.fail("id %d was given out twice", id)
			return
		}
		o.tasks[id] = &watchedTask{id: id, key: n.key, leaseMS: n.leaseMS}
		if n.key != "" {
			o.keys[n.key] = id
		}
	}
}

func (o *watch) claims(w *world, c *command, sentAt int64, r *fsm.Result, now fsm.Stamp) {
	if r.Code != "" {
		return
	}
	first := o.requests[c.request]
	if first != nil && first.live == 0 && now.U >= first.endedU+rememberedMS {
		delete(o.requests, c.request)
		first = nil
	}
	if r.Repeated && first == nil { // a claim by id of the one who holds it
		t := o.tasks[c.id]
		if c.verb != verbClaimTask || t == nil || t.holder == 0 || t.worker != c.worker || r.Claims[0].Token != t.holder {
			w.fail("claim was answered as repeated, nobody asked before: %v", c)
			return
		}
		o.extended(w, t, c.leaseMS, sentAt, r.Task, now)
		return
	}
	if r.Repeated {
		same := len(first.claims) == len(r.Claims)
		for i := 0; same && i < len(r.Claims); i++ {
			same = first.claims[i] == claimOf{r.Claims[i].Task.ID, r.Claims[i].Token}
		}
		if !same {
			w.fail("request %q got another answer than the first time", c.request)
		}
		return
	}
	if first != nil && c.request != "" {
		w.fail("request %q was answered anew, it had been answered before", c.request)
		return
	}
	o.begin(w, c, sentAt, r, now)
}

// begin takes the claims that were begun.
func (o *watch) begin(w *world, c *command, sentAt int64, r *fsm.Result, now fsm.Stamp) {
	var request *watchedRequest
	if c.request != "" && len(r.Claims) > 0 {
		request = &watchedRequest{live: len(r.Claims)}
		o.requests[c.request] = request
	}
	for i := range r.Claims {
		cl := &r.Claims[i]
		t := o.tasks[cl.Task.ID]
		switch {
		case t == nil:
			w.fail("task %d was claimed, it is not there", cl.Task.ID)
			return
		case t.holder != 0:
			w.fail("task %d was claimed by %s (token %d) while %s holds it (token %d)", t.id, c.worker, cl.Token, t.worker, t.holder)
			return
		case cl.Token <= o.lastToken:
			w.fail("token %d of task %d was given out after token %d", cl.Token, t.id, o.lastToken)
			return
		}
		o.lastToken = cl.Token
		length := c.leaseMS
		if length == 0 {
			length = t.leaseMS
		}
		if length == 0 {
			length = leaseByDefault
		}
		t.holder, t.worker, t.seq, t.claimMS = cl.Token, c.worker, 1, length
		t.notBefore = sentAt + length*millisecond
		o.dueAt(w, t, cl.Task.LeaseEndU-now.U)
		o.live = append(o.live, t)
		if request != nil {
			request.claims = append(request.claims, claimOf{t.id, cl.Token})
			o.byToken[cl.Token] = request
		}
	}
}

// dueAt notes when the lease must have ended that has so much left now.
func (o *watch) dueAt(w *world, t *watchedTask, leftMS int64) {
	left := leftMS * millisecond
	t.due, t.changes = o.served+left+left/1000+3*millisecond, w.changes
}

// held returns the task that an accepted call of a claim's worker was about.
func (o *watch) held(w *world, c *command) *watchedTask {
	t := o.tasks[c.id]
	if t == nil || t.holder == 0 || t.worker != c.worker || c.token != 0 && c.token != t.holder {
		w.fail("accepted from one who does not hold the claim: %v", c)
		return &watchedTask{}
	}
	return t
}

// extended takes an accepted extend.
func (o *watch) extended(w *world, t *watchedTask, asked, sentAt int64, after *fsm.Task, now fsm.Stamp) {
	if asked == 0 {
		asked = t.claimMS
	}
	t.notBefore = max(t.notBefore, sentAt+asked*millisecond)
	t.seq++
	t.claimMS = after.ClaimLeaseMS
	o.dueAt(w, t, after.LeaseEndU-now.U)
}

func (o *watch) settle(w *world, c *command, r *fsm.Result, now fsm.Stamp) {
	switch {
	case r.Code != "":
	case r.Repeated:
		if v, ok := o.settled[c.token]; c.token != 0 && (!ok || v != c.verb) {
			w.fail("answered as repeated, but it had not been done: %v", c)
		}
	default:
		t := o.held(w, c)
		o.settled[t.holder] = c.verb
		o.end(t, now)
	}
}

func (o *watch) expire(w *world, c *command, decidedAt int64, r *fsm.Result, now fsm.Stamp) {
	count := 0
	for _, l := range c.items {
		t := o.tasks[l.id]
		if t == nil || t.holder != l.token || t.seq != l.seq {
			continue
		}
		count++
		if decidedAt < t.notBefore {
			w.fail("the lease of task %d (token %d) was ended %.6f ms before its time", t.id, t.holder, float64(t.notBefore-decidedAt)/1e6)
			return
		}
		if until := o.believed[t.holder]; decidedAt < until {
			w.fail("the lease of task %d (token %d) was ended %.6f ms before the time that its worker was told", t.id, t.holder, float64(until-decidedAt)/1e6)
			return
		}
		o.expiredAt[t.holder] = decidedAt
		o.end(t, now)
	}
	if count != r.Expired {
		w.fail("%d leases were ended, %d of them were the ones meant", r.Expired, count)
	}
}

// end ends the claim of a task.
func (o *watch) end(t *watchedTask, now fsm.Stamp) {
	if r := o.byToken[t.holder]; r != nil {
		delete(o.byToken, t.holder)
		if r.live--; r.live == 0 {
			r.endedU = now.U
		}
	}
	t.holder = 0
	for i, l := range o.live {
		if l == t {
			o.live[i] = o.live[len(o.live)-1]
			o.live = o.live[:len(o.live)-1]
			return
		}
	}
}

// believes notes that a worker takes a claim for its own until then.
func (o *watch) believes(w *world, token uint64, until int64) {
	if at, ok := o.expiredAt[token]; ok && at < until {
		w.fail("a worker was told that its claim (token %d) lasts %.6f ms longer than it did", token, float64(until-at)/1e6)
	}
	o.believed[token] = max(o.believed[token], until)
}

// pass lets time go on from now to at: it counts when the cluster could serve,
// and looks for leases that have ended long ago.
func (o *watch) pass(w *world, at int64) {
	l := w.leader
	if l == nil || !l.serving || l.replica.paused() > 0 {
		return
	}
	if f := l.flight; f != nil && at-f.since > stalledAfter {
		// It cannot commit, which is as good as no leader; then it waits.
		o.waitUntil = at + latePauseAllowed
	}
	if w.now < o.waitUntil {
		return
	}
	o.served += at - w.now
	if o.served-o.swept < 100*millisecond {
		return
	}
	o.swept = o.served
	for _, t := range o.live {
		if late := o.served - t.due - requeueMax - int64(w.changes-t.changes)*changeAllowance; late > 0 {
			w.fail("the lease of task %d (token %d) ended %.3f s ago and nobody has requeued it", t.id, t.holder, float64(o.served-t.due)/1e9)
			return
		}
	}
}
