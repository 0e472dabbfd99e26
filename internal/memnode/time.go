package memnode

import (
	"context"
	"math"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

const (
	// momentsMax bounds the moments that one Advance handles one by one.
	momentsMax = 100_000
	// dueMax bounds the leases, and the slots of schedules, of one entry.
	dueMax = 1_000
	// unreadableAfter is the delay before a schedule that cannot be read is tried again.
	unreadableAfter = time.Hour
	// tickMax bounds the sleep of a ticking clock.
	tickMax = time.Hour
)

// Now returns the wall clock's time, in UTC.
func (n *Node) Now() (time.Time, error) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	err := n.catchUp()
	return time.UnixMilli(n.Stamp.T).UTC(), err
}

// catchUp moves both clocks to the program's time, if they follow it. The caller holds Mu.
func (n *Node) catchUp() error {
	if n.FollowSince.IsZero() {
		return nil
	}
	ms := time.Since(n.FollowSince).Milliseconds() - n.ticked
	if ms <= 0 {
		return nil
	}
	n.ticked += ms
	return n.run(ms)
}

// Tick runs what becomes due without a call, until ctx ends.
func (n *Node) Tick(ctx context.Context) {
	for ctx.Err() == nil {
		n.Mu.Lock()
		err := n.catchUp()
		due, news := time.Duration(min(n.untilDue(), tickMax.Milliseconds()))*time.Millisecond, n.news
		n.Mu.Unlock()
		if err != nil {
			return // the next call returns it
		}
		timer := time.NewTimer(due)
		select {
		case <-timer.C:
		case <-news:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Advance moves both clocks forward by d, rounded up to a millisecond, and runs what becomes due on the way.
func (n *Node) Advance(d time.Duration) error {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if err := n.catchUp(); err != nil {
		return err
	}
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return n.run(ms)
}

// run moves both clocks forward by rest milliseconds, from one moment at which something is due to the next. The
// caller holds Mu.
func (n *Node) run(rest int64) error {
	for range momentsMax {
		step := n.untilDue()
		if step >= rest {
			break
		}
		if err := n.move(step); err != nil {
			return err
		}
		rest -= step
	}
	return n.move(rest)
}

// move moves the clocks and handles what is due then.
func (n *Node) move(ms int64) error {
	n.Stamp.U += ms
	n.Stamp.T += ms
	// Needed even if no task is due, because the state learns the time from it and forgets what the lease clock ends.
	if _, err := n.Apply(command.Tick{}); err != nil {
		return err
	}
	return n.runDue()
}

// untilDue returns the milliseconds, at least 1, until something is due.
func (n *Node) untilDue() int64 {
	at := int64(math.MaxInt64) // by T
	for _, next := range []func() (int64, bool){n.Machine.NextDue, n.Machine.NextSlot, n.Machine.NextOpening} {
		if t, ok := next(); ok {
			at = min(at, t)
		}
	}
	step := at - n.Stamp.T
	for l := range n.Machine.Leases() {
		step = min(step, l.EndU-n.Stamp.U)
	}
	return max(step, 1)
}

// runDue does what a leader does about everything that is due now, and then serves waiting claims. The caller holds
// Mu.
func (n *Node) runDue() error {
	for {
		cmd := n.due()
		if cmd == nil {
			break
		}
		if _, err := n.Apply(cmd); err != nil {
			return err
		}
	}
	n.serve()
	return nil
}

// due returns a command for what is due, or nil. Applying it makes that no longer due.
func (n *Node) due() command.Command {
	var expired []command.Lease
	for l := range n.Machine.Leases() {
		if l.EndU <= n.Stamp.U && len(expired) < dueMax {
			expired = append(expired, l)
		}
	}
	if len(expired) > 0 {
		return command.Expire{Items: expired}
	}
	if schedules := n.Machine.DueSchedules(n.Stamp.T, dueMax); len(schedules) > 0 {
		run := command.RunSchedules{Items: make([]command.ScheduleRun, len(schedules))}
		for i, v := range schedules {
			run.Items[i] = n.slotOf(v)
		}
		return run
	}
	if t, ok := n.Machine.NextDue(); ok && t <= n.Stamp.T {
		return command.Tick{}
	}
	return nil
}

// slotOf returns the command for a schedule's slot that has come.
func (n *Node) slotOf(v *fsm.ScheduleView) command.ScheduleRun {
	run := command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt}
	times, err := cron.Plan{Cron: v.Cron, Timezone: v.Timezone, EveryMS: v.EveryMS}.Read(nil)
	if err != nil { // the API accepted it, so this machine knew the time zone
		run.Skip, run.Next = true, n.Stamp.T+unreadableAfter.Milliseconds()
		return run
	}
	run.Next, _ = times.Following(run.Slot, n.Stamp.T)
	return run
}
