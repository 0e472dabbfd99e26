package sim

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Bounds of guarantee 5 of docs/guarantees.md.
const (
	requeueMax       = second            // an ended lease is requeued within this time
	changeAllowance  = 500 * millisecond // each change of leader may add this
	unheardAllowance = 5 * second        // and this if no one is left who was told U before it
	stalledAfter     = 200 * millisecond
	latePauseAllowed = 1100 * millisecond // after a pause the leader waits for extends
)

// slotLateMax bounds the delay of a slot, in milliseconds of the leader's calendar, while a
// leader serves without faults.
const slotLateMax = 5000

// watch checks what the state machine cannot know: that leases and other times end neither
// early nor late in real time. It sees the results of the entries, in order.
type watch struct {
	live      map[uint64]*watchedLease // by task
	expiredAt map[uint64]int64         // by token: when the expiry was decided
	believed  map[uint64]int64         // by token: until when the worker believes to hold it, in real time

	// served is the total time with a leader that could commit, swept its value at the last
	// sweep.
	served, swept int64
	waitUntil     int64 // after a pause the leader waits for extends
	grace         int64 // total that changes of leader may have added
	leaderless    int64 // begin of the time without a leader

	// led is the total time with a leader, even one that was cut off without knowing it;
	// stampedLed its value at the stamp of the current entry.
	led, stampedLed int64

	walled int64 // when mayBe was computed
	mayBe  int64 // latest possible calendar then, in nanoseconds
}

// watchedLease describes a live claim.
type watchedLease struct {
	id, token uint64
	seq       uint32
	// The lease must not end before notBefore, in real time, and notBeforeLed, in time with
	// a leader; it must have ended by due, in served time; grace is the total that changes
	// of leader may have added until then.
	notBefore, notBeforeLed, due, grace int64
}

func newWatch() *watch {
	return &watch{live: map[uint64]*watchedLease{}, expiredAt: map[uint64]int64{}, believed: map[uint64]int64{}}
}

// entry checks the results of an entry, once, when it is committed.
func (o *watch) entry(w *world, e *entry) {
	o.stampedLed = e.led
	for i, p := range e.proposals {
		c, r := p.c, &e.applied.Results[i]
		if w.out != nil {
			w.say("  entry %d: %s -> %s", e.index, lineOf(c), lineOf(r))
		}
		o.command(w, e, c, p.sentAt, r)
	}
	for id, l := range o.live {
		if t := w.state.Get(id); t == nil || t.Token != l.token || t.Status != fsm.StatusClaimed {
			delete(o.live, id)
		}
	}
}

func (o *watch) command(w *world, e *entry, c command.Command, sentAt int64, r *fsm.Result) {
	done := r.Code == "" && !r.Repeated
	switch c := c.(type) {
	case command.ClaimNext:
		if done {
			o.begin(c.LeaseMS, sentAt, r.Claims, e)
		}
	case command.ClaimTask:
		switch {
		case done:
			o.begin(c.LeaseMS, sentAt, r.Claims, e)
		case r.Code == "" && r.Task != nil: // by its holder
			o.extended(r.Task, c.LeaseMS, sentAt, e)
		}
	case command.Complete:
		if done {
			delete(o.live, c.ID)
			if c.Claim != nil && !r.ClaimsRepeated {
				o.begin(c.Claim.LeaseMS, sentAt, r.Claims, e)
			}
		}
	case command.Extend:
		if done {
			o.extended(r.Task, c.LeaseMS, sentAt, e)
		}
	case command.Batch:
		for i := range r.Results {
			o.command(w, e, c.Ops[i], sentAt, &r.Results[i])
		}
	case command.Expire:
		o.expire(w, c, sentAt)
	case command.RunSchedules:
		o.runSlots(w, e, c)
	}
}

// begin records new claims.
func (o *watch) begin(asked, sentAt int64, claims []fsm.Claim, e *entry) {
	for i := range claims {
		t := &claims[i].Task
		length := cmp.Or(asked, t.ClaimLeaseMS) * millisecond
		l := &watchedLease{id: t.ID, token: claims[i].Token, seq: 1, notBefore: sentAt + length, notBeforeLed: o.stampedLed + length}
		o.dueAt(l, t.LeaseEndU-e.applied.Stamp.U)
		o.live[t.ID] = l
	}
}

// extended records an accepted extend.
func (o *watch) extended(t *fsm.Task, asked, sentAt int64, e *entry) {
	l := o.live[t.ID]
	if l == nil {
		return
	}
	length := cmp.Or(asked, t.ClaimLeaseMS) * millisecond
	l.seq, l.notBefore, l.notBeforeLed = t.LeaseSeq, max(l.notBefore, sentAt+length), max(l.notBeforeLed, o.stampedLed+length)
	o.dueAt(l, t.LeaseEndU-e.applied.Stamp.U)
}

// dueAt records when the lease must have ended that now has leftMS left.
func (o *watch) dueAt(l *watchedLease, leftMS int64) {
	left := leftMS * millisecond
	l.due, l.grace = o.served+left+left/1000+3*millisecond, o.grace
}

func (o *watch) expire(w *world, c command.Expire, decidedAt int64) {
	for _, item := range c.Items {
		l := o.live[item.TaskID]
		if l == nil || l.token != item.Token || l.seq != item.Seq {
			continue
		}
		delete(o.live, l.id)
		o.expiredAt[l.token] = decidedAt
		until := o.believed[l.token]
		switch {
		case decidedAt < l.notBefore:
			w.fail("the lease of task %d (token %d) was ended %.6f ms before its time", l.id, l.token, float64(l.notBefore-decidedAt)/1e6)
		case o.stampedLed < l.notBeforeLed:
			w.fail("the lease of task %d (token %d) was ended %.6f ms before its time, as time without a leader does not count", l.id, l.token, float64(l.notBeforeLed-o.stampedLed)/1e6)
		case decidedAt < until:
			w.fail("the lease of task %d (token %d) was ended %.6f ms before the time that its worker was told", l.id, l.token, float64(until-decidedAt)/1e6)
		}
	}
}

// runSlots ensures that no future slot is skipped.
func (o *watch) runSlots(w *world, e *entry, c command.RunSchedules) {
	for _, item := range c.Items {
		v := w.state.Schedule(item.Name)
		if v == nil || v.Version != item.Version || v.EveryMS == 0 {
			continue
		}
		if before := item.Next - v.EveryMS; before > item.Slot && before > e.applied.Stamp.T {
			w.fail("slot %d of schedule %s is left out at T=%d", before, v.Name, e.applied.Stamp.T)
		}
	}
}

// believes records until when a worker believes to hold a claim, if that is in the future:
// an answer may concern a claim that is over.
func (o *watch) believes(w *world, token uint64, until int64) {
	if until <= w.now {
		return
	}
	if at, ok := o.expiredAt[token]; ok && at < until {
		w.fail("a worker was told that its claim (token %d) lasts %.6f ms longer than it did", token, float64(until-at)/1e6)
	}
	o.believed[token] = max(o.believed[token], until)
}

// changed records a change of leader, and the time that it may add to leases: little if a
// replica that heard the previous leader in its last moments answers the new one.
func (o *watch) changed(w *world) {
	for _, r := range w.replicas {
		if heard := o.leaderless - changeAllowance; r.answers() && r.since <= heard && r.pausedUntil <= heard {
			o.grace += changeAllowance
			return
		}
	}
	o.grace += unheardAllowance
}

// pass advances time from now to at: it counts the time in which the cluster could serve,
// and looks for leases that should have ended long ago.
func (o *watch) pass(w *world, at int64) {
	if w.leader != nil || slices.ContainsFunc(w.deposed, func(d *leader) bool { return !d.over }) {
		o.led += at - w.now
	}
	l := w.leader
	if l == nil || !l.serving || l.replica.paused() > 0 {
		return
	}
	if f := l.flight; f != nil && at-f.packedAt > stalledAfter {
		// It cannot commit, which is like having no leader; then it waits.
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
	var late *watchedLease // the one with the lowest token
	for _, l := range o.live {
		if o.served-l.due-requeueMax-(o.grace-l.grace) > 0 && (late == nil || l.token < late.token) {
			late = l
		}
	}
	if late != nil {
		w.fail("the lease of task %d (token %d) ended %.3f s ago and nobody has requeued it", late.id, late.token, float64(o.served-late.due)/1e9)
	}
}

// last checks the state long after the last fault: no slot of a schedule is late.
func (o *watch) last(w *world, now int64) {
	for _, v := range w.state.Schedules() {
		switch {
		case v.NextRunAt == 0 && !v.Paused:
			w.fail("schedule %s waits for nothing", v.Name)
		case v.NextRunAt != 0 && now-v.NextRunAt > slotLateMax:
			w.fail("slot %d of schedule %s is %d ms late at the end", v.NextRunAt, v.Name, now-v.NextRunAt)
		}
	}
}
