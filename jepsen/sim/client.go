package sim

import (
	"slices"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/repeat"
)

// callTimeout bounds a call with its repeats, and tryTimeout one try.
const (
	callTimeout   = 30 * second
	tryTimeoutMax = 5 * second
	tryTimeoutMin = 100 * millisecond
)

// worker is a process that claims tasks, with a clock of its own.
type worker struct {
	w    *world
	name string
	rate int64   // extra rate of its clock, in millionths
	held []claim // live, as far as it knows
	over []claim // the last ones that are over
}

// claim is a claim as its worker knows it.
type claim struct {
	id, token uint64
	endsAt    int64 // by the worker's clock
}

func (k *worker) local(at int64) int64 { return at + at/1000*k.rate/1000 }

// real returns the time at which the worker's clock shows local, rounded down.
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
	k.over = lastOf(overMax, k.over, k.held[i])
	k.held = slices.Delete(k.held, i, i+1)
}

// hold returns the worker's hold for its claim.
func (k *worker) hold(c claim) command.Hold {
	return command.Hold{ID: c.id, WorkerID: k.name, Token: c.token}
}

// message is one delivery of one try.
type message struct {
	c      command.Command
	sentAt int64
	// reply is called with the answer when the node sends it.
	reply func(outcome)
}

// call is one call of a client, over all its tries.
type call struct {
	w       *world
	name    string // of the client, for a trace
	d       *dice
	c       command.Command
	repeats repeat.Call

	firstSentAt, sentAt int64
	deadline            int64
	waiting             bool // for the answer to a try
	over                bool
	// done, if not nil, is called once with the outcome.
	done func(k *call, o outcome)
}

// call makes a call of a command, unless the cluster's level does not support it yet.
func (w *world) call(d *dice, name string, c command.Command, repeatable bool, done func(k *call, o outcome)) {
	if !w.knows(c) {
		return
	}
	k := &call{w: w, name: name, d: d, c: c, done: done, firstSentAt: w.now, deadline: w.now + callTimeout}
	k.repeats = repeat.Call{Repeatable: repeatable, Mutation: true}
	k.send()
}

// send makes one try, and decides whether its messages arrive.
func (k *call) send() {
	w, d := k.w, k.d
	k.waiting = true
	k.sentAt = w.now
	try := k.repeats.Tries
	if w.out != nil {
		w.say("%s, try %d: %s", k.name, try+1, lineOf(k.c))
	}
	lossy := !w.quiet
	if lossy && d.in(w.profile.refused) {
		w.after(millisecond, func() { k.verdict(try, repeat.Broken(false), outcome{}) })
		return
	}
	timeout := min(max((k.deadline-w.now)/2, tryTimeoutMin), tryTimeoutMax)
	w.after(timeout, func() { k.verdict(try, repeat.Broken(true), outcome{}) })
	loseAnswer := lossy && d.in(w.profile.loss)
	back := d.n(w.profile.netMS*millisecond + 1)
	m := &message{c: k.c, sentAt: w.now, reply: func(o outcome) {
		if !loseAnswer {
			w.after(back, func() { k.answered(try, o) })
		}
	}}
	if !lossy || !d.in(w.profile.loss) {
		there := d.n(w.profile.netMS*millisecond + 1)
		if lossy && d.in(20) {
			there += d.n(7 * second) // stuck somewhere for a long time
		}
		w.after(there, func() { w.arrive(m) })
	}
	if lossy && d.in(w.profile.double) {
		w.after(d.n(2*second), func() { w.arrive(m) })
	}
	w.sent = lastOf(sentMax, w.sent, &message{c: m.c, sentAt: m.sentAt, reply: func(outcome) {}})
}

// answered handles the answer to a try.
func (k *call) answered(try int, o outcome) {
	v := repeat.Settled
	if code := wire.Code(o.code); code != "" {
		v = repeat.Judge(code.Status(), code)
	}
	k.verdict(try, v, o)
}

// verdict continues after a try, like the client.
func (k *call) verdict(try int, v repeat.Verdict, o outcome) {
	if k.over || !k.waiting || try != k.repeats.Tries {
		return // it has continued long ago
	}
	k.waiting = false
	w := k.w
	switch k.repeats.Next(v) {
	case repeat.Take, repeat.Follow:
		k.end(o)
	case repeat.GiveUp:
		w.say("%s: the outcome is unknown", k.name)
		k.end(outcome{code: codeUnknown})
	case repeat.Wait:
		pause := k.repeats.Pause(0, func(n time.Duration) time.Duration { return time.Duration(k.d.n(int64(n))) })
		if w.now+int64(pause) > k.deadline {
			k.end(outcome{code: codeUnknown})
			return
		}
		w.after(int64(pause), func() {
			if !k.over {
				k.send()
			}
		})
	}
}

func (k *call) end(o outcome) {
	k.over = true
	if k.done != nil {
		k.done(k, o)
	}
}

// arrive delivers a request to the leader, to a node that still believes that it leads, or
// to none.
func (w *world) arrive(m *message) {
	l := w.leader
	for i, d := range w.deposed {
		if !d.over && (uint64(m.sentAt)+uint64(i))%3 == 0 {
			l = d
			break
		}
	}
	if l == nil {
		m.reply(outcome{code: codeNoLeader})
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
	claim, isClaim := m.c.(command.ClaimNext)
	schedule, isSchedule := m.c.(command.SetSchedule)
	switch {
	case !l.serving || command.LevelOf(m.c) > l.machine.Level(): // not yet: the call is repeated
		m.reply(outcome{code: codeNoLeader})
	case isClaim && !l.machine.Claimable(claim, l.clock.Now()):
		if l.cut { // its leadership cannot be confirmed
			m.reply(outcome{code: codeNoLeader})
			return
		}
		m.reply(outcome{code: "no_pending_tasks"})
	case isSchedule:
		l.serveSchedule(m, schedule)
	default:
		l.propose(&proposal{c: m.c, sentAt: m.sentAt, done: m.reply})
	}
}

// takeClaims takes the claims in the answer to a claim with that lease, which call
// requested.
func (k *worker) takeClaims(call *call, leaseMS int64, result *fsm.Result, now fsm.Stamp) (live int) {
	w := k.w
	for i := range result.Claims {
		cl := &result.Claims[i]
		if !cl.Live {
			continue
		}
		live++
		left := time.Duration(cl.Task.LeaseEndU-now.U) * time.Millisecond
		asked := time.Duration(leaseMS) * time.Millisecond
		end := repeat.ClaimEnd(time.Unix(0, k.local(call.firstSentAt)), time.Unix(0, k.local(call.sentAt)), max(left, 0), asked, result.Repeated || result.ClaimsRepeated).UnixNano()
		k.forget(cl.Token)
		k.held = append(k.held, claim{id: cl.Task.ID, token: cl.Token, endsAt: end})
		w.watch.believes(w, cl.Token, k.real(end))
	}
	return live
}

// takeSettled updates the worker's claims after an accepted command.
func (k *worker) takeSettled(call *call, c command.Command, result *fsm.Result, now fsm.Stamp) {
	switch c := c.(type) {
	case command.ClaimNext:
		k.takeClaims(call, c.LeaseMS, result, now)
	case command.Complete:
		k.forget(c.Token)
		if c.Claim != nil {
			k.takeClaims(call, c.Claim.LeaseMS, result, now)
		}
	case command.Fail:
		k.forget(c.Token)
	case command.Release:
		k.forget(c.Token)
	case command.Extend:
		k.takeExtend(call, c.Token, result, now)
	}
}

// settled handles the answer to a settle or an extend of the claim.
func (k *worker) settled(call *call, h command.Hold, o outcome) {
	switch o.code {
	case "":
		k.takeSettled(call, call.c, &o.result, o.stamp)
	case codeUnknown:
	default:
		k.forget(h.Token)
	}
}

// takeExtend handles the answer to an extend.
func (k *worker) takeExtend(call *call, token uint64, result *fsm.Result, now fsm.Stamp) {
	i := slices.IndexFunc(k.held, func(c claim) bool { return c.token == token })
	if i < 0 || result.Task == nil {
		return
	}
	left := time.Duration(result.Task.LeaseEndU-now.U) * time.Millisecond
	end := repeat.LeaseEnd(time.Unix(0, k.local(call.sentAt)), max(left, 0)).UnixNano()
	if end > k.held[i].endsAt {
		k.held[i].endsAt = end
		k.w.watch.believes(k.w, token, k.real(end))
	}
}
