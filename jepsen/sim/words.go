package sim

import (
	"fmt"
	"strings"
)

// String tells the command in one line, for a trace.
func (c *command) String() string {
	var b strings.Builder
	b.WriteString(c.verb.String())
	switch c.verb {
	case verbSubmit:
		tellTasks(&b, c.tasks)
	case verbClaimNext:
		fmt.Fprintf(&b, " worker=%s types=%v limit=%d lease=%dms request=%q", c.worker, c.types, c.limit, c.leaseMS, c.request)
		addIf(&b, c.byCreated, " by created_at")
		addIf(&b, c.random, " at random")
		addIf(&b, c.ascending, " ascending")
		addIf(&b, c.more > 0, fmt.Sprintf(" with more than %d attempts left", c.more))
	case verbClaimTask:
		fmt.Fprintf(&b, " task %d worker=%s lease=%dms request=%q", c.id, c.worker, c.leaseMS, c.request)
	case verbComplete, verbFail, verbRelease:
		fmt.Fprintf(&b, " task %d worker=%s token=%d %s%s", c.id, c.worker, c.token, c.result, c.reason)
		addIf(&b, c.permanent, " permanent")
		addIf(&b, c.retryIn || c.delayMS > 0, fmt.Sprintf(" in %dms", c.delayMS))
		tellTasks(&b, c.tasks)
		if c.next != nil {
			fmt.Fprintf(&b, " then %v", c.next)
		}
	case verbExtend:
		fmt.Fprintf(&b, " task %d worker=%s token=%d lease=%dms %s", c.id, c.worker, c.token, c.leaseMS, c.progress)
	case verbRetry:
		fmt.Fprintf(&b, " task %d token=%d add=%d", c.id, c.token, c.add)
	case verbDelete, verbCancel:
		fmt.Fprintf(&b, " task %d", c.id)
	case verbPatch:
		c.tellPatch(&b)
	case verbBatch:
		addIf(&b, c.atomic, " atomic")
		for _, op := range c.ops {
			fmt.Fprintf(&b, " [%v]", op)
		}
	case verbSetType, verbSetDefaults:
		c.tellSettings(&b)
	case verbEvict:
		fmt.Fprintf(&b, " down to %d bytes", c.bytes)
	case verbExpire:
		for _, l := range c.items {
			fmt.Fprintf(&b, " {task %d token %d seq %d}", l.id, l.token, l.seq)
		}
	case verbSetNode:
		b.WriteString(" " + c.node)
	case verbSetLevel:
		fmt.Fprintf(&b, " %d by=%q", c.level, c.by)
	case verbTell:
		fmt.Fprintf(&b, " %s %q by=%q", c.told, c.what, c.by)
	case verbAct:
		fmt.Fprintf(&b, " tasks %v: %v add=%d if %+v", c.ids, c.action, c.add, c.filter)
	case verbSetSchedule:
		s := c.schedule
		fmt.Fprintf(&b, " %s every=%dms cron=%q next=%d overlap=%v skip=%v paused=%v", s.name, s.everyMS, s.cron, s.next, s.overlap, s.skipLate, s.paused)
		tellTasks(&b, []newTask{s.task})
	case verbDeleteSchedule:
		b.WriteString(" " + c.schedule.name)
	case verbRunSchedules:
		for _, r := range c.runs {
			fmt.Fprintf(&b, " {%s version %d slot %d next %d skip=%v}", r.name, r.version, r.slot, r.next, r.skip)
		}
	case verbSetTrail:
		fmt.Fprintf(&b, " %d bytes, %d ms", c.bounds.bytes, c.bounds.ageMS)
	case verbClaimEnd, verbExtendEnd:
		fmt.Fprintf(&b, " task %d processor=%s timeout=%dms", c.id, c.worker, c.timeoutMS)
	case verbReleaseEnd:
		fmt.Fprintf(&b, " task %d processor=%s", c.id, c.worker)
	case verbFinalize:
		fmt.Fprintf(&b, " task %d processor=%s token=%d failed=%v %s%s", c.id, c.worker, c.token, c.failed, c.result, c.reason)
	case verbTick, verbCheckpoint:
	}
	return b.String()
}

// addIf adds the words if they are so.
func addIf(b *strings.Builder, is bool, words string) {
	if is {
		b.WriteString(words)
	}
}

func tellTasks(b *strings.Builder, tasks []newTask) {
	for _, t := range tasks {
		fmt.Fprintf(b, " {%s key=%q priority=%d max=%d lease=%dms %s", t.kind, t.key, t.priority, t.max, t.leaseMS, t.body)
		addIf(b, t.delayMS > 0, fmt.Sprintf(" delay=%dms", t.delayMS))
		addIf(b, t.runAt > 0, fmt.Sprintf(" run_at=%d", t.runAt))
		addIf(b, t.expiresAt > 0, fmt.Sprintf(" expires_at=%d", t.expiresAt))
		if t.backoff != nil {
			fmt.Fprintf(b, " backoff=%+v", *t.backoff)
		}
		addIf(b, t.keepMS != 0, fmt.Sprintf(" retention=%d", t.keepMS))
		addIf(b, t.group != "", " group="+t.group)
		addIf(b, t.active, " unique=active")
		addIf(b, t.ofKind, " key of its type")
		t.parent.tell(b)
		b.WriteString("}")
	}
}

func (p *plan) tell(b *strings.Builder) {
	if p == nil {
		return
	}
	fmt.Fprintf(b, " finalize by claim=%v, goes on=%v, steps:", p.byClaim, p.goesOn)
	for _, s := range p.steps {
		fmt.Fprintf(b, " %s after %v", s.name, s.on)
		tellTasks(b, []newTask{s.task})
	}
}

func (c *command) tellPatch(b *strings.Builder) {
	fmt.Fprintf(b, " task %d", c.id)
	if c.set.priority != nil {
		fmt.Fprintf(b, " priority=%d", *c.set.priority)
	}
	if c.set.runAt != nil {
		fmt.Fprintf(b, " run_at=%d", *c.set.runAt)
	}
	if c.set.labels != nil {
		fmt.Fprintf(b, " labels=%v", *c.set.labels)
	}
}

func (c *command) tellSettings(b *strings.Builder) {
	s := &c.settings
	b.WriteString(" " + c.kind)
	addIf(b, c.changes.paused, fmt.Sprintf(" paused=%v", s.paused))
	addIf(b, c.changes.claims, fmt.Sprintf(" max_claimed=%d", s.claims))
	addIf(b, c.changes.rate, fmt.Sprintf(" rate=%d/1000000", s.rate))
	addIf(b, c.changes.lease, fmt.Sprintf(" lease=%dms", s.leaseMS))
	addIf(b, c.changes.attempts, fmt.Sprintf(" max=%d (%v)", s.max, s.limited))
	addIf(b, c.changes.keep, fmt.Sprintf(" retention=%d", s.keepMS))
	switch {
	case !c.changes.backoff:
	case s.backoff == nil:
		b.WriteString(" no backoff")
	default:
		fmt.Fprintf(b, " backoff=%+v", *s.backoff)
	}
}
