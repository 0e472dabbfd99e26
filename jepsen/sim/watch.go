package sim

import (
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// Bounds of guarantee 5 of docs/guarantees.md.
const (
	requeueMax       = second            // an ended lease is requeued within
	changeAllowance  = 500 * millisecond // what each change of leader may add
	unheardAllowance = 5 * second        // and if nobody is left who was told U before it
	stalledAfter     = 200 * millisecond
	latePauseAllowed = 1100 * millisecond // after the leader stood still it waits for extends
)

// watch checks what must hold whatever the model says. It knows the results of
// the entries, in order, and real time.
type watch struct {
	tasks     map[uint64]*watchedTask
	lastToken uint64
	keys      map[watchedKey]uint64 // to the task that has it
	requests  map[string]*watchedRequest
	byToken   map[uint64]*watchedRequest
	settled   map[uint64]model.Verb // by token: what ended the claim
	expiredAt map[uint64]int64      // by token: when the expiry was decided
	believed  map[uint64]int64      // by token: until when the worker takes it for its own, in real time
	live      []*watchedTask
	types     map[string]*model.Settings // of task types, as they were set
	done      map[uint64]model.Then      // by token: what a completion did beside
	kept      map[string]bool            // types that ever had a retention of their own
	level     uint32
	defaults  model.Settings // the server's
	keptAll   bool           // whether those ever had a retention
	evicted   bool           // something was, ever
	schedules map[string]*watchedSchedule
	parents   map[uint64]*watchedParent
	stepOf    map[uint64]*watchedParent // by the step's id
	slots     int                       // that a task was made for

	// served is how long a leader has served that could commit, and what it was
	// when the sweep looked last.
	served, swept int64
	waitUntil     int64 // the leader stood still: it waits for extends
	grace         int64 // what all changes of leader may have added
	leaderless    int64 // since when there is no leader

	// led is how long there has been a leader, also one that was cut off and does not
	// know it; stampedLed what it was when the entry was stamped that is looked at.
	led, stampedLed int64

	walled int64 // when mayBe was worked out
	mayBe  int64 // what the calendar may show by then, in nanoseconds
}

// watchedKey is an idempotency key: of a type, or "" if it is taken among all tasks.
type watchedKey struct{ kind, key string }

func keyOf(kind, key string, ofKind bool) watchedKey {
	if !ofKind {
		kind = ""
	}
	return watchedKey{kind, key}
}

// rivals returns the tasks that had the key last and that may not have it together
// with one of that type: one that took it among all tasks, unless this is for the type
// alone and that of another, and one that took it among those of the type.
func (o *watch) rivals(kind, key string, ofKind bool) []uint64 {
	var ids []uint64
	if id := o.keys[watchedKey{"", key}]; key != "" && id != 0 && (!ofKind || o.tasks[id] == nil || o.tasks[id].kind == kind) {
		ids = append(ids, id)
	}
	if id := o.keys[watchedKey{kind, key}]; key != "" && id != 0 {
		ids = append(ids, id)
	}
	return ids
}

// watchedTask is what is known of a task.
type watchedTask struct {
	id      uint64
	kind    string
	key     string
	leaseMS int64
	group   string
	active  bool // its key is free when it ends
	ofKind  bool // its key is that of its type
	expires bool // it has an expires_at
	lapses  bool // it may have ended since then without an answer that told so
	keepMS  int64
	runAt   int64 // not to be claimed before, by T

	// When it ended, as far as answers told, -1: it has not; since when it may
	// have if lapses.
	endedU, endedT int64
	sinceU, sinceT int64

	holder  uint64 // token of the live claim, 0 if none
	worker  string
	seq     uint32
	claimMS int64
	// notBefore is when the lease may end at the earliest, in real time; due when
	// it has ended at the latest, by served time; grace what all changes of leader
	// may have added until then.
	notBefore, due, grace int64
	// notBeforeLed is when it may end at the earliest, by time with a leader.
	notBeforeLed int64
}

// watchedRequest is the first answer to a claim request.
type watchedRequest struct {
	claims []model.ClaimOf
	live   int
	endedU int64
}

func newWatch() *watch {
	return &watch{
		tasks: map[uint64]*watchedTask{}, keys: map[watchedKey]uint64{},
		requests: map[string]*watchedRequest{}, byToken: map[uint64]*watchedRequest{},
		settled: map[uint64]model.Verb{}, expiredAt: map[uint64]int64{}, believed: map[uint64]int64{},
		types: map[string]*model.Settings{}, done: map[uint64]model.Then{}, kept: map[string]bool{},
		schedules: map[string]*watchedSchedule{}, parents: map[uint64]*watchedParent{}, stepOf: map[uint64]*watchedParent{},
	}
}

// entry looks at the results of an entry, once, when the first replica has
// applied it, and at the events that it added to the trail.
func (o *watch) entry(w *world, e *entry, machine *fsm.Machine, applied *fsm.Applied, events []event.Event) {
	o.stampedLed = e.led
	for i, c := range e.commands {
		r := &applied.Results[i]
		w.mix(uint64(c.Verb), uint64(len(r.Code)), uint64(r.Expired), uint64(len(r.Claims)))
		if r.Task != nil {
			w.mix(r.Task.ID, r.Task.Token, uint64(r.Task.Status))
		}
		if w.tracing() {
			w.say("  entry %d: %v -> %s", e.index, c, describe(r))
		}
		switch c.Verb {
		case model.VerbRunSchedules:
			o.runSlots(w, c, r, events, applied.Stamp)
		case model.VerbAct:
			o.acted(w, c, e.want[i].Acted, applied.Stamp)
		default:
			o.command(w, e, c, e.sentAt[i], r, applied.Stamp)
		}
	}
	o.steps(w, machine, events)
}

func (o *watch) command(w *world, e *entry, c *model.Command, sentAt int64, r *fsm.Result, now fsm.Stamp) {
	switch c.Verb {
	case model.VerbSubmit:
		o.submitAll(w, c.Tasks, r.Submitted, now)
	case model.VerbClaimNext, model.VerbClaimTask:
		o.claims(w, c, sentAt, r, now)
	case model.VerbComplete, model.VerbFail, model.VerbRelease:
		o.settle(w, c, sentAt, r, now)
	case model.VerbExtend:
		if r.Code == "" {
			t := o.held(w, c)
			o.extended(w, t, c.LeaseMS, sentAt, r.Task, now)
		}
	case model.VerbRetry, model.VerbDelete, model.VerbCancel, model.VerbPatch:
		if r.Code == "" && !r.Gone {
			o.change(w, c, r, now)
		}
	case model.VerbBatch:
		for i := range r.Results {
			o.command(w, e, c.Ops[i], sentAt, &r.Results[i], now)
		}
		if c.Atomic && (r.Code == "") != (len(r.Results) == len(c.Ops)) {
			w.fail("an atomic batch was done in part: %v", c)
		}
	case model.VerbSetType:
		s := o.types[c.Kind]
		if s == nil {
			s = &model.Settings{}
			o.types[c.Kind] = s
		}
		*s = c.Changed(*s)
		o.kept[c.Kind] = o.kept[c.Kind] || s.KeepMS != 0
	case model.VerbSetDefaults:
		o.defaults = c.Changed(o.defaults)
		o.keptAll = o.keptAll || o.defaults.KeepMS != 0
	case model.VerbEvict:
		o.evicted = o.evicted || r.Evicted > 0
	case model.VerbExpire:
		o.expire(w, c, sentAt, r, now)
	case model.VerbSetSchedule:
		o.setSchedule(w, c, r)
	case model.VerbDeleteSchedule:
		delete(o.schedules, c.Schedule.Name)
	case model.VerbClaimEnd, model.VerbExtendEnd, model.VerbReleaseEnd, model.VerbFinalize:
		o.finalization(w, e, c, sentAt, r)
	case model.VerbSetLevel:
		if o.level == 0 {
			o.defaults = c.Settings
		}
		o.level = max(o.level, c.Level)
	case model.VerbTick, model.VerbCheckpoint, model.VerbSetNode, model.VerbRunSchedules, model.VerbSetTrail, model.VerbAct, model.VerbTell:
	}
}

// change takes an accepted call that is about one task and no claim.
func (o *watch) change(w *world, c *model.Command, r *fsm.Result, now fsm.Stamp) {
	t := o.tasks[c.ID]
	if t == nil {
		w.fail("accepted for a task that was deleted, or never was: %v", c)
		return
	}
	switch c.Verb {
	case model.VerbRetry:
		if !r.Repeated && t.holder != 0 {
			o.end(t, now)
		}
		t.runAt = 0
		o.retried(t.id, now)
		o.look(t, r.Task, now)
		if t.endedU < 0 {
			o.livesAgain(w, t, now)
		}
	case model.VerbCancel:
		o.look(t, r.Task, now)
	case model.VerbPatch:
		if t.holder != 0 || t.endedU >= 0 {
			w.fail("accepted for a task that is claimed or has ended: %v", c)
		}
		if c.Set.RunAt != nil {
			t.runAt = *c.Set.RunAt
		}
	default:
		if t.holder != 0 {
			w.fail("delete of task %d was accepted: it is held", c.ID)
			return
		}
		delete(o.tasks, c.ID)
		o.deleted(c.ID)
		o.keyless(t)
	}
}

// livesAgain gives the task its key, which nobody else may have.
func (o *watch) livesAgain(w *world, t *watchedTask, now fsm.Stamp) {
	if t.key == "" {
		return
	}
	for _, has := range o.rivals(t.kind, t.key, t.ofKind) {
		if has != t.id && !o.free(o.tasks[has], now) {
			w.fail("task %d lives again with key %q, which task %d has", t.id, t.key, has)
		}
	}
	o.keys[keyOf(t.kind, t.key, t.ofKind)] = t.id
}

// keyless notes that the task, which goes, has its key no more.
func (o *watch) keyless(t *watchedTask) {
	if key := keyOf(t.kind, t.key, t.ofKind); o.keys[key] == t.id {
		delete(o.keys, key)
	}
}

// look notes whether the task has ended.
func (o *watch) look(t *watchedTask, after *fsm.Task, now fsm.Stamp) {
	switch {
	case !after.Status.Ended():
		t.endedU, t.endedT = -1, -1
	case t.endedU < 0:
		t.endedU, t.endedT = now.U, now.T
	}
}

func (o *watch) submitAll(w *world, tasks []model.NewTask, submitted []fsm.Submitted, now fsm.Stamp) {
	if len(tasks) != len(submitted) {
		w.fail("%d tasks were submitted, %d answered", len(tasks), len(submitted))
		return
	}
	for i := range tasks {
		o.submit(w, &tasks[i], &submitted[i], now)
	}
}

func (o *watch) submit(w *world, n *model.NewTask, s *fsm.Submitted, now fsm.Stamp) {
	id := s.Task.ID
	rivals := o.rivals(n.Kind, n.Key, n.OfKind)
	switch {
	case s.Refused:
		o.refused(w, n, now)
	case !s.Created && !slices.Contains(rivals, id):
		w.fail("submit with key %q was answered with task %d, the key leads to %d", n.Key, id, rivals)
	case s.Created && slices.ContainsFunc(rivals, func(has uint64) bool { return !o.free(o.tasks[has], now) }):
		w.fail("submit with key %q made task %d, the key has task %d", n.Key, id, rivals)
	case s.Created:
		if o.tasks[id] != nil {
			w.fail("id %d was given out twice", id)
			return
		}
		t := watchedOf(id, n, now)
		o.tasks[id] = t
		if n.Key != "" {
			o.keys[keyOf(n.Kind, n.Key, n.OfKind)] = id
		}
		if n.Parent != nil {
			o.submitSteps(w, t, n.Parent, now)
		}
	}
}

// refused holds a refused task to what was asked for: it, or one of its steps, ends
// before it begins.
func (o *watch) refused(w *world, n *model.NewTask, now fsm.Stamp) {
	tasks := []model.NewTask{*n}
	if n.Parent != nil {
		tasks = tasks[:0]
		for i := range n.Parent.Steps {
			tasks = append(tasks, n.Parent.Steps[i].Task)
		}
	}
	if !slices.ContainsFunc(tasks, func(n model.NewTask) bool { return n.ExpiresAt != 0 && n.ExpiresAt-now.T <= n.DelayMS }) {
		w.fail("submit of a task that somebody could have claimed was refused")
	}
}

// watchedOf returns what is known of a task that was just submitted.
func watchedOf(id uint64, n *model.NewTask, now fsm.Stamp) *watchedTask {
	t := &watchedTask{
		id: id, kind: n.Kind, key: n.Key, leaseMS: n.LeaseMS, group: n.Group, active: n.Active, ofKind: n.OfKind, expires: n.ExpiresAt != 0,
		lapses: n.ExpiresAt != 0 || n.Parent != nil,
		keepMS: n.KeepMS, runAt: n.RunAt, endedU: -1, endedT: -1, sinceU: now.U, sinceT: now.T,
	}
	if n.DelayMS != 0 {
		t.runAt = now.T + n.DelayMS
	}
	return t
}

// free reports whether the key of the task may be another's: it has ended and
// does not keep it, or it was removed long enough ago.
func (o *watch) free(t *watchedTask, now fsm.Stamp) bool {
	if t == nil {
		return false
	}
	endedU := t.endedU
	if endedU < 0 && t.lapses {
		endedU = t.sinceU // or later
	}
	return endedU >= 0 && (t.active || now.U >= endedU+model.RememberedMS && o.removable(t, now))
}

// removable reports whether retention or eviction may have removed the task.
func (o *watch) removable(t *watchedTask, now fsm.Stamp) bool {
	if p := o.stepOf[t.id]; p != nil {
		t = o.tasks[p.id] // they go together
	}
	endedT := t.endedT
	if endedT < 0 && t.lapses {
		endedT = t.sinceT
	}
	return endedT >= 0 && (o.evicted || o.keptAll || o.kept[t.kind] || t.keepMS != 0 || now.T >= endedT+model.KeptByDefault)
}

func (o *watch) claims(w *world, c *model.Command, sentAt int64, r *fsm.Result, now fsm.Stamp) {
	if r.Code != "" {
		return
	}
	first := o.requests[c.Request]
	if first != nil && first.live == 0 && now.U >= first.endedU+model.RememberedMS {
		delete(o.requests, c.Request)
		first = nil
	}
	if r.Repeated && first == nil { // a claim by id of the one who holds it
		t := o.tasks[c.ID]
		if c.Verb != model.VerbClaimTask || t == nil || t.holder == 0 || t.worker != c.Worker || r.Claims[0].Token != t.holder {
			w.fail("claim was answered as repeated, nobody asked before: %v", c)
			return
		}
		o.extended(w, t, c.LeaseMS, sentAt, r.Task, now)
		return
	}
	if r.Repeated {
		same := len(first.claims) == len(r.Claims)
		for i := 0; same && i < len(r.Claims); i++ {
			same = first.claims[i] == model.ClaimOf{ID: r.Claims[i].Task.ID, Token: r.Claims[i].Token}
		}
		if !same {
			w.fail("request %q got another answer than the first time", c.Request)
		}
		return
	}
	if first != nil && c.Request != "" {
		w.fail("request %q was answered again, it had been answered before", c.Request)
		return
	}
	o.begin(w, c, sentAt, r.Claims, now)
}

// begin takes the claims that were begun.
func (o *watch) begin(w *world, c *model.Command, sentAt int64, claims []fsm.Claim, now fsm.Stamp) {
	var request *watchedRequest
	if c.Request != "" && len(claims) > 0 {
		request = &watchedRequest{live: len(claims)}
		o.requests[c.Request] = request
	}
	for i := range claims {
		cl := &claims[i]
		t := o.tasks[cl.Task.ID]
		if t != nil && !o.allowed(w, c, t, now) {
			return
		}
		switch {
		case t == nil:
			w.fail("task %d was claimed, it is not there", cl.Task.ID)
			return
		case t.holder != 0:
			w.fail("task %d was claimed by %s (token %d) while %s holds it (token %d)", t.id, c.Worker, cl.Token, t.worker, t.holder)
			return
		case cl.Token <= o.lastToken:
			w.fail("token %d of task %d was given out after token %d", cl.Token, t.id, o.lastToken)
			return
		}
		o.lastToken = cl.Token
		length := c.LeaseMS
		for _, otherwise := range []int64{t.leaseMS, o.settingsOf(t.kind).Or(&o.defaults).LeaseMS, model.LeaseByDefault} {
			if length == 0 {
				length = otherwise
			}
		}
		t.holder, t.worker, t.seq, t.claimMS, t.lapses = cl.Token, c.Worker, 1, length, false
		t.notBefore, t.notBeforeLed = sentAt+length*millisecond, o.stampedLed+length*millisecond
		o.dueAt(t, cl.Task.LeaseEndU-now.U)
		o.live = append(o.live, t)
		if request != nil {
			request.claims = append(request.claims, model.ClaimOf{ID: t.id, Token: cl.Token})
			o.byToken[cl.Token] = request
		}
	}
}

func (o *watch) settingsOf(kind string) model.Settings {
	if s := o.types[kind]; s != nil {
		return *s
	}
	return model.Settings{}
}

// allowed reports whether a claim of the task may begin now, as far as its
// time, its group and its type say.
func (o *watch) allowed(w *world, c *model.Command, t *watchedTask, now fsm.Stamp) bool {
	s := o.settingsOf(t.kind)
	live := int32(0)
	for _, other := range o.live {
		if other.kind != t.kind {
			continue
		}
		live++
		if t.group != "" && other.group == t.group {
			w.fail("task %d was claimed while task %d of its group %q is", t.id, other.id, t.group)
		}
	}
	switch {
	case s.Claims > 0 && live >= s.Claims:
		w.fail("task %d was claimed, %d claims of its type live and %d may", t.id, live, s.Claims)
	case now.T < t.runAt:
		w.fail("task %d was claimed at %d, it was to wait until %d", t.id, now.T, t.runAt)
	case s.Paused && c.Verb == model.VerbClaimNext:
		w.fail("task %d was claimed, its type is paused", t.id)
	case t.endedU >= 0:
		w.fail("task %d was claimed, it has ended", t.id)
	}
	return w.failure == ""
}

// dueAt notes when the lease must have ended that has so much left now.
func (o *watch) dueAt(t *watchedTask, leftMS int64) {
	left := leftMS * millisecond
	t.due, t.grace = o.served+left+left/1000+3*millisecond, o.grace
}

// held returns the task that an accepted call of a claim's worker was about.
func (o *watch) held(w *world, c *model.Command) *watchedTask {
	t := o.tasks[c.ID]
	if t == nil || t.holder == 0 || t.worker != c.Worker || c.Token != 0 && c.Token != t.holder {
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
	t.notBeforeLed = max(t.notBeforeLed, o.stampedLed+asked*millisecond)
	t.seq++
	t.claimMS = after.ClaimLeaseMS
	o.dueAt(t, after.LeaseEndU-now.U)
}

func (o *watch) settle(w *world, c *model.Command, sentAt int64, r *fsm.Result, now fsm.Stamp) {
	switch {
	case r.Code != "":
	case r.Repeated:
		if v, ok := o.settled[c.Token]; c.Token != 0 && (!ok || v != c.Verb) {
			w.fail("answered as repeated, but it had not been done: %v", c)
		}
		if did, ok := o.done[c.Token]; ok && !doneAlike(did, thenOf(r)) {
			w.fail("a repeated completion was answered otherwise than the first: %v", c)
		}
	default:
		t := o.held(w, c)
		o.settled[t.holder] = c.Verb
		token := t.holder
		o.end(t, now)
		o.look(t, r.Task, now)
		t.runAt = 0
		if c.RetryIn || c.Verb == model.VerbRelease {
			t.runAt = now.T + c.DelayMS
		}
		if c.Verb == model.VerbRelease { // as if it had not been started
			t.lapses, t.sinceU, t.sinceT = t.expires, now.U, now.T
		}
		if c.Verb == model.VerbComplete {
			o.done[token] = thenOf(r)
			o.submitAll(w, c.Tasks, r.Submitted, now)
			o.next(w, c.Next, sentAt, r.Claims, now)
		}
	}
}

// next takes what the claim of a completion took.
func (o *watch) next(w *world, c *model.Command, sentAt int64, claims []fsm.Claim, now fsm.Stamp) {
	if c == nil {
		if len(claims) > 0 {
			w.fail("a completion took claims that it had not asked for")
		}
		return
	}
	o.claims(w, c, sentAt, &fsm.Result{Claims: claims, Repeated: o.known(c.Request, now)}, now)
}

// known reports whether a claim request is remembered.
func (o *watch) known(request string, now fsm.Stamp) bool {
	first := o.requests[request]
	return first != nil && (first.live > 0 || now.U < first.endedU+model.RememberedMS)
}

// thenOf returns what a completion did beside.
func thenOf(r *fsm.Result) model.Then {
	var did model.Then
	for i := range r.Submitted {
		did.Submitted = append(did.Submitted, model.FollowUp{ID: r.Submitted[i].Task.ID, Created: r.Submitted[i].Created})
	}
	for i := range r.Claims {
		did.Claims = append(did.Claims, model.ClaimOf{ID: r.Claims[i].Task.ID, Token: r.Claims[i].Token})
	}
	return did
}

func doneAlike(d, other model.Then) bool {
	return slices.Equal(d.Submitted, other.Submitted) && slices.Equal(d.Claims, other.Claims)
}

func (o *watch) expire(w *world, c *model.Command, decidedAt int64, r *fsm.Result, now fsm.Stamp) {
	count := 0
	for _, l := range c.Items {
		t := o.tasks[l.ID]
		if t == nil || t.holder != l.Token || t.seq != l.Seq {
			continue
		}
		count++
		if decidedAt < t.notBefore {
			w.fail("the lease of task %d (token %d) was ended %.6f ms before its time", t.id, t.holder, float64(t.notBefore-decidedAt)/1e6)
			return
		}
		if o.stampedLed < t.notBeforeLed {
			w.fail("the lease of task %d (token %d) was ended %.6f ms before its time, as time without a leader does not count", t.id, t.holder, float64(t.notBeforeLed-o.stampedLed)/1e6)
			return
		}
		if until := o.believed[t.holder]; decidedAt < until {
			w.fail("the lease of task %d (token %d) was ended %.6f ms before the time that its worker was told", t.id, t.holder, float64(until-decidedAt)/1e6)
			return
		}
		o.expiredAt[t.holder] = decidedAt
		o.end(t, now)
		t.lapses, t.sinceU, t.sinceT = true, now.U, now.T
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

// believes notes that a worker takes a claim for its own until then, if that is
// still to come: an answer may tell of one whose time is over.
func (o *watch) believes(w *world, token uint64, until int64) {
	if until <= w.now {
		return
	}
	if at, ok := o.expiredAt[token]; ok && at < until {
		w.fail("a worker was told that its claim (token %d) lasts %.6f ms longer than it did", token, float64(until-at)/1e6)
	}
	o.believed[token] = max(o.believed[token], until)
}

// changed notes a change of leader, and what it may add to leases: little if
// anybody answers the new leader who heard the one before in its last moments.
func (o *watch) changed(w *world) {
	for _, r := range w.replicas {
		if heard := o.leaderless - changeAllowance; r.answers() && r.since <= heard && r.pausedUntil <= heard {
			o.grace += changeAllowance
			return
		}
	}
	o.grace += unheardAllowance
}

// pass lets time go on from now to at: it counts when the cluster could serve,
// and looks for leases that have ended long ago.
func (o *watch) pass(w *world, at int64) {
	if w.leader != nil || slices.ContainsFunc(w.deposed, func(d *leader) bool { return !d.over }) {
		o.led += at - w.now
	}
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
		if late := o.served - t.due - requeueMax - (o.grace - t.grace); late > 0 {
			w.fail("the lease of task %d (token %d) ended %.3f s ago and nobody has requeued it", t.id, t.holder, float64(o.served-t.due)/1e9)
			return
		}
	}
}
