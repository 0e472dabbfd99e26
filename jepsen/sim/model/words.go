package model

import (
	"fmt"
	"strings"
)

// String tells the command in one line, for a trace.
func (c *Command) String() string {
	var b strings.Builder
	b.WriteString(c.Verb.String())
	switch c.Verb {
	case VerbSubmit:
		tellTasks(&b, c.Tasks)
	case VerbClaimNext:
		fmt.Fprintf(&b, " worker=%s types=%v limit=%d lease=%dms request=%q", c.Worker, c.Types, c.Limit, c.LeaseMS, c.Request)
		addIf(&b, c.ByCreated, " by created_at")
		addIf(&b, c.Random, " at random")
		addIf(&b, c.Ascending, " ascending")
		addIf(&b, c.More > 0, fmt.Sprintf(" with more than %d attempts left", c.More))
	case VerbClaimTask:
		fmt.Fprintf(&b, " task %d worker=%s lease=%dms request=%q", c.ID, c.Worker, c.LeaseMS, c.Request)
	case VerbComplete, VerbFail, VerbRelease:
		fmt.Fprintf(&b, " task %d worker=%s token=%d %s%s", c.ID, c.Worker, c.Token, c.Result, c.Reason)
		addIf(&b, c.Permanent, " permanent")
		addIf(&b, c.RetryIn || c.DelayMS > 0, fmt.Sprintf(" in %dms", c.DelayMS))
		tellTasks(&b, c.Tasks)
		if c.Next != nil {
			fmt.Fprintf(&b, " then %v", c.Next)
		}
	case VerbExtend:
		fmt.Fprintf(&b, " task %d worker=%s token=%d lease=%dms %s", c.ID, c.Worker, c.Token, c.LeaseMS, c.Progress)
	case VerbRetry:
		fmt.Fprintf(&b, " task %d token=%d add=%d", c.ID, c.Token, c.Add)
	case VerbDelete, VerbCancel:
		fmt.Fprintf(&b, " task %d", c.ID)
	case VerbPatch:
		c.tellPatch(&b)
	case VerbBatch:
		addIf(&b, c.Atomic, " atomic")
		for _, op := range c.Ops {
			fmt.Fprintf(&b, " [%v]", op)
		}
	case VerbSetType, VerbSetDefaults:
		c.tellSettings(&b)
	case VerbEvict:
		fmt.Fprintf(&b, " down to %d bytes", c.Bytes)
	case VerbExpire:
		for _, l := range c.Items {
			fmt.Fprintf(&b, " {task %d token %d seq %d}", l.ID, l.Token, l.Seq)
		}
	case VerbSetNode:
		b.WriteString(" " + c.Node)
	case VerbSetLevel:
		fmt.Fprintf(&b, " %d by=%q defaults=%v", c.Level, c.By, c.Settings.Limited)
	case VerbTell:
		fmt.Fprintf(&b, " %s %q by=%q", c.Told, c.What, c.By)
	case VerbAct:
		fmt.Fprintf(&b, " tasks %v: %v add=%d if %+v", c.IDs, c.Action, c.Add, c.Filter)
	case VerbSetSchedule:
		s := c.Schedule
		fmt.Fprintf(&b, " %s every=%dms cron=%q next=%d overlap=%v skip=%v paused=%v", s.Name, s.EveryMS, s.Cron, s.Next, s.Overlap, s.SkipLate, s.Paused)
		tellTasks(&b, []NewTask{s.Task})
	case VerbDeleteSchedule:
		b.WriteString(" " + c.Schedule.Name)
	case VerbRunSchedules:
		for _, r := range c.Runs {
			fmt.Fprintf(&b, " {%s version %d slot %d next %d skip=%v}", r.Name, r.Version, r.Slot, r.Next, r.Skip)
		}
	case VerbSetTrail:
		fmt.Fprintf(&b, " %d bytes, %d ms", c.Bounds.Bytes, c.Bounds.AgeMS)
	case VerbClaimEnd, VerbExtendEnd:
		fmt.Fprintf(&b, " task %d processor=%s timeout=%dms", c.ID, c.Worker, c.TimeoutMS)
	case VerbReleaseEnd:
		fmt.Fprintf(&b, " task %d processor=%s", c.ID, c.Worker)
	case VerbFinalize:
		fmt.Fprintf(&b, " task %d processor=%s token=%d failed=%v %s%s", c.ID, c.Worker, c.Token, c.Failed, c.Result, c.Reason)
	case VerbTick, VerbCheckpoint:
	}
	return b.String()
}

// addIf adds the words if they are so.
func addIf(b *strings.Builder, is bool, words string) {
	if is {
		b.WriteString(words)
	}
}

func tellTasks(b *strings.Builder, tasks []NewTask) {
	for _, t := range tasks {
		fmt.Fprintf(b, " {%s key=%q priority=%d max=%d lease=%dms %s", t.Kind, t.Key, t.Priority, t.Max, t.LeaseMS, t.Body)
		addIf(b, t.DelayMS > 0, fmt.Sprintf(" delay=%dms", t.DelayMS))
		addIf(b, t.RunAt > 0, fmt.Sprintf(" run_at=%d", t.RunAt))
		addIf(b, t.ExpiresAt > 0, fmt.Sprintf(" expires_at=%d", t.ExpiresAt))
		if t.Backoff != nil {
			fmt.Fprintf(b, " backoff=%+v", *t.Backoff)
		}
		addIf(b, t.KeepMS != 0, fmt.Sprintf(" retention=%d", t.KeepMS))
		addIf(b, t.Group != "", " group="+t.Group)
		addIf(b, t.Active, " unique=active")
		addIf(b, t.OfKind, " key of its type")
		t.Parent.tell(b)
		b.WriteString("}")
	}
}

func (p *Plan) tell(b *strings.Builder) {
	if p == nil {
		return
	}
	fmt.Fprintf(b, " finalize by claim=%v, goes on=%v, steps:", p.ByClaim, p.GoesOn)
	for _, s := range p.Steps {
		fmt.Fprintf(b, " %s after %v", s.Name, s.On)
		tellTasks(b, []NewTask{s.Task})
	}
}

func (c *Command) tellPatch(b *strings.Builder) {
	fmt.Fprintf(b, " task %d", c.ID)
	if c.Set.Priority != nil {
		fmt.Fprintf(b, " priority=%d", *c.Set.Priority)
	}
	if c.Set.RunAt != nil {
		fmt.Fprintf(b, " run_at=%d", *c.Set.RunAt)
	}
	if c.Set.Labels != nil {
		fmt.Fprintf(b, " labels=%v", *c.Set.Labels)
	}
}

func (c *Command) tellSettings(b *strings.Builder) {
	s := &c.Settings
	b.WriteString(" " + c.Kind)
	addIf(b, c.Changes.Paused, fmt.Sprintf(" paused=%v", s.Paused))
	addIf(b, c.Changes.Claims, fmt.Sprintf(" max_claimed=%d", s.Claims))
	addIf(b, c.Changes.Rate, fmt.Sprintf(" rate=%d/1000000", s.Rate))
	addIf(b, c.Changes.Lease, fmt.Sprintf(" lease=%dms", s.LeaseMS))
	addIf(b, c.Changes.Attempts, fmt.Sprintf(" max=%d (%v)", s.Max, s.Limited))
	addIf(b, c.Changes.Keep, fmt.Sprintf(" retention=%d", s.KeepMS))
	switch {
	case !c.Changes.Backoff:
	case s.Backoff == nil:
		b.WriteString(" no backoff")
	default:
		fmt.Fprintf(b, " backoff=%+v", *s.Backoff)
	}
}
