package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/repeat"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// callTimeout is how long a call may take with its repeats, and tryTimeout how
// long one try at most.
const (
	callTimeout   = 30 * second
	tryTimeoutMax = 5 * second
	tryTimeoutMin = 100 * millisecond
)

// worker is a process that claims tasks, with a clock of its own.
type worker struct {
	w    *world
	name string
	rate int64   // how much faster its clock runs, in millionths
	held []claim // live, as far as it knows
	over []claim // the last ones that are over
}

// claim is a claim as its worker knows it.
type claim struct {
	id, token uint64
	endsAt    int64 // by the worker's clock
}

func (k *worker) local(at int64) int64 { return at + at/1000*k.rate/1000 }

// real returns when the worker's clock shows that, not later.
func (k *worker) real(local int64) int64 {
	left := local - k.local(k.w.now)
	return k.w.now + left - left/1000*k.rate/1000
}

// forget moves a claim to those that are over.
func (k *worker) forget(token uint64) {
	i := slices.IndexFunc(k.held, func(c claim) bool { return c.token == token })
	if i < 0 {
		return
	}
	k.over = append(k.over, k.held[i])
	if len(k.over) > 8 {
		k.over = k.over[1:]
	}
	k.held = slices.Delete(k.held, i, i+1)
}

// message is one delivery of one try.
type message struct {
	c      *model.Command
	id     uint64 // of a read
	sentAt int64
	// reply is called with the answer, as the node sends it.
	reply func(reply)
}

// reply is an answer on its way.
type reply struct {
	ok   bool
	code string // of a refusal
	o    outcome
}

// call is one call of a client, over all its tries.
type call struct {
	w       *world
	name    string // of the client, for a trace
	d       *dice
	c       *model.Command // nil: a read
	id      uint64         // of a read
	repeats repeat.Call

	firstSentAt, sentAt int64
	deadline            int64
	waiting             bool // for the answer to a try
	over                bool
	// done is called once, with what it came to: ok and a reply, or a refusal;
	// unknown if nobody can tell.
	done func(r reply, unknown bool)
}

// begin sends the first try.
func (k *call) begin() {
	k.deadline = k.w.now + callTimeout
	k.firstSentAt = k.w.now
	k.repeats.Mutation = k.c != nil
	k.send()
}

// send makes one try: whether its messages arrive is decided here.
func (k *call) send() {
	w, d := k.w, k.d
	k.waiting = true
	k.sentAt = w.now
	try := k.repeats.Tries
	if w.tracing() {
		if k.c != nil {
			w.say("%s, try %d: %v", k.name, try+1, k.c)
		} else {
			w.say("%s, try %d: get task %d", k.name, try+1, k.id)
		}
	}
	lossy := !w.quiet
	if lossy && d.in(w.profile.refused) {
		w.after(millisecond, func() { k.verdict(try, repeat.Broken(false), reply{}) })
		return
	}
	timeout := min(max((k.deadline-w.now)/2, tryTimeoutMin), tryTimeoutMax)
	w.after(timeout, func() { k.verdict(try, repeat.Broken(true), reply{}) })
	loseAnswer := lossy && d.in(w.profile.loss)
	back := d.n(w.profile.netMS*millisecond + 1)
	m := &message{c: k.c, id: k.id, sentAt: w.now, reply: func(r reply) {
		if !loseAnswer {
			w.after(back, func() { k.answered(try, r) })
		}
	}}
	if !lossy || !d.in(w.profile.loss) {
		there := d.n(w.profile.netMS*millisecond + 1)
		if lossy && d.in(20) {
			there += d.n(7 * second) // stuck somewhere for long
		}
		w.after(there, func() { w.arrive(m) })
	}
	if lossy && d.in(w.profile.double) {
		w.after(d.n(2*second), func() { w.arrive(m) })
	}
	w.keepMessage(m)
}

// keepMessage remembers what was sent, to be delivered again much later.
func (w *world) keepMessage(m *message) {
	if m.c == nil {
		return
	}
	w.sent = append(w.sent, &message{c: m.c, sentAt: m.sentAt, reply: func(reply) {}})
	if len(w.sent) > 32 {
		w.sent = w.sent[1:]
	}
}

// answered takes the answer to a try.
func (k *call) answered(try int, r reply) {
	v := repeat.Settled
	if !r.ok {
		code := wire.Code(r.code)
		v = repeat.Judge(code.Status(), code)
	}
	k.verdict(try, v, r)
}

// verdict goes on after a try, the way the client does.
func (k *call) verdict(try int, v repeat.Verdict, r reply) {
	if k.over || !k.waiting || try != k.repeats.Tries {
		return // it has long gone on
	}
	k.waiting = false
	w := k.w
	switch k.repeats.Next(v) {
	case repeat.Take, repeat.Follow:
		k.end(r, false)
	case repeat.GiveUp:
		w.say("%s: the outcome is unknown", k.name)
		k.end(reply{}, true)
	case repeat.Wait:
		pause := k.repeats.Pause(0, func(n time.Duration) time.Duration { return time.Duration(k.d.n(int64(n))) })
		if w.now+int64(pause) > k.deadline {
			k.end(reply{}, true)
			return
		}
		w.after(int64(pause), func() {
			if !k.over {
				k.send()
			}
		})
	}
}

func (k *call) end(r reply, unknown bool) {
	k.over = true
	k.w.mix(uint64(k.repeats.Tries), uint64(len(r.code)))
	k.done(r, unknown)
}

// arrive is a request reaching the cluster: it gets to the leader, or to one
// that still takes itself for it, or to nobody.
func (w *world) arrive(m *message) {
	l := w.leader
	for i, d := range w.deposed {
		if !d.over && (uint64(m.sentAt)+uint64(i))%3 == 0 {
			l = d
			break
		}
	}
	if l == nil {
		m.reply(reply{code: "no_leader"})
		return
	}
	if d := l.replica.paused(); d > 0 {
		w.after(d, func() { w.arrive(m) })
		return
	}
	l.serve(m)
}

// serve answers one request.
func (l *leader) serve(m *message) {
	w := l.w
	switch {
	case !l.serving:
		m.reply(reply{code: "no_leader"})
	case m.c == nil:
		l.serveRead(m)
	case command.LevelOf(realOf(m.c)) > l.replica.machine.Level():
		m.reply(reply{code: "no_leader"}) // not yet: it is asked again
	case m.c.Verb == model.VerbClaimNext && !l.replica.machine.Claimable(realClaimNext(m.c), l.clock.Now()):
		if l.cut { // nobody confirms that it leads
			m.reply(reply{code: "no_leader"})
			return
		}
		if w.model.Claimable(m.c, l.clock.Now().U, l.clock.Now().T) {
			w.fail("answered that there is nothing to claim, the model has something: %v", m.c)
		}
		m.reply(reply{code: "no_pending_tasks"})
	case m.c.Verb == model.VerbSetSchedule:
		l.serveSchedule(m)
	default:
		l.propose(&proposal{c: m.c, sentAt: m.sentAt, done: func(o outcome) { m.reply(replyOf(o)) }})
	}
}

// replyOf is what the HTTP layer makes of an outcome.
func replyOf(o outcome) reply {
	switch {
	case o.fate == notLeader:
		return reply{code: "no_leader"}
	case o.fate == unknown:
		return reply{code: "outcome_unknown"}
	case o.result.Code != "":
		return reply{code: string(o.result.Code), o: o}
	}
	return reply{ok: true, o: o}
}

// serveRead answers a linearizable read.
func (l *leader) serveRead(m *message) {
	w := l.w
	if l.cut {
		m.reply(reply{code: "no_leader"})
		return
	}
	got, want := l.replica.machine.Get(m.id), w.model.Find(m.id)
	if (got == nil) != (want == nil) {
		w.fail("a read of task %d found it: %v, the model has it: %v", m.id, got != nil, want != nil)
		return
	}
	if want == nil {
		m.reply(reply{code: "task_not_found"})
		return
	}
	if d := taskDiffers(got, want); d != "" {
		w.fail("read: %s", d)
	}
	m.reply(reply{ok: true})
}

// takeClaims takes the claims of an answer to the claim c, which call asked for.
func (k *worker) takeClaims(call *call, c *model.Command, result *fsm.Result, now fsm.Stamp) (live int) {
	w := k.w
	for i := range result.Claims {
		cl := &result.Claims[i]
		if !cl.Live {
			continue
		}
		live++
		left := time.Duration(cl.Task.LeaseEndU-now.U) * time.Millisecond
		asked := time.Duration(c.LeaseMS) * time.Millisecond
		end := repeat.ClaimEnd(time.Unix(0, k.local(call.firstSentAt)), time.Unix(0, k.local(call.sentAt)), max(left, 0), asked, result.Repeated || result.ClaimsRepeated).UnixNano()
		k.forget(cl.Token)
		k.held = append(k.held, claim{id: cl.Task.ID, token: cl.Token, endsAt: end})
		w.watch.believes(w, cl.Token, k.real(end))
	}
	return live
}

// takeExtend takes the answer to an extend.
func (k *worker) takeExtend(call *call, r reply) {
	i := slices.IndexFunc(k.held, func(c claim) bool { return c.token == call.c.Token })
	if i < 0 || r.o.result.Task == nil {
		return
	}
	left := time.Duration(r.o.result.Task.LeaseEndU-r.o.stamp.U) * time.Millisecond
	end := repeat.LeaseEnd(time.Unix(0, k.local(call.sentAt)), max(left, 0)).UnixNano()
	if end > k.held[i].endsAt {
		k.held[i].endsAt = end
		k.w.watch.believes(k.w, call.c.Token, k.real(end))
	}
}

// describe tells a result in one line, for a trace.
func describe(r *fsm.Result) string {
	s := "done"
	if r.Code != "" {
		s = string(r.Code)
	}
	if r.Repeated {
		s = "repeated"
	}
	if r.Gone {
		s += " gone"
	}
	for i := range r.Submitted {
		one := &r.Submitted[i]
		s += fmt.Sprintf(" {task %d created=%v gone=%v refused=%v}", one.Task.ID, one.Created, one.Gone, one.Refused)
	}
	for i := range r.Results {
		s += " [" + describe(&r.Results[i]) + "]"
	}
	if r.Evicted > 0 {
		s += " " + strconv.Itoa(r.Evicted) + " evicted"
	}
	for i := range r.Claims {
		c := &r.Claims[i]
		s += fmt.Sprintf(" {task %d token %d live=%v until U=%d}", c.Task.ID, c.Token, c.Live, c.Task.LeaseEndU)
	}
	if p := r.Parent; p != nil {
		s += fmt.Sprintf(" {%s done=%v holder=%q token=%d %v already=%v}", outcomeNames[p.Outcome], p.Done, p.Holder, p.Token, p.State, p.AlreadyFinalized)
	}
	if r.Acted > 0 {
		s += " acted on " + strconv.Itoa(r.Acted)
	}
	if r.Schedule != nil {
		s += fmt.Sprintf(" version %d, its first slot is %d", r.Schedule.Version, r.Schedule.NextRunAt)
	}
	if r.Expired > 0 {
		s += " " + strconv.Itoa(r.Expired) + " expired"
	}
	if len(r.Claims) == 0 && r.Task != nil {
		s += fmt.Sprintf(" task %d is %s, token %d, until U=%d", r.Task.ID, r.Task.Status, r.Task.Token, r.Task.LeaseEndU)
	}
	return s
}
