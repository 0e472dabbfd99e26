package clienttest

import (
	"context"
	"math"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

const (
	// momentsMax bounds the moments that one advance handles one by one.
	momentsMax = 100_000
	// dueMax bounds the leases, and the slots of schedules, of one entry.
	dueMax = 1_000
	// unreadableAfter is the delay before a schedule that cannot be read is tried again.
	unreadableAfter = time.Hour
	// tickMax bounds the sleep of a ticking clock.
	tickMax = time.Hour
)

func (n *node) now() (time.Time, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.catchUp()
	return time.UnixMilli(n.stamp.T).UTC(), err
}

// catchUp moves both clocks to the program's time, if they follow it. The caller holds mu.
func (n *node) catchUp() error {
	if n.begun.IsZero() {
		return nil
	}
	ms := time.Since(n.begun).Milliseconds() - n.ticked
	if ms <= 0 {
		return nil
	}
	n.ticked += ms
	return n.run(ms)
}

// tick handles what becomes due without a call, until ctx ends.
func (n *node) tick(ctx context.Context) {
	for ctx.Err() == nil {
		n.mu.Lock()
		err := n.catchUp()
		due, news := time.Duration(min(n.untilDue(), tickMax.Milliseconds()))*time.Millisecond, n.news
		n.mu.Unlock()
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

// advance moves both clocks forward by d.
func (n *node) advance(d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
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
// caller holds mu.
func (n *node) run(rest int64) error {
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
func (n *node) move(ms int64) error {
	n.stamp.U += ms
	n.stamp.T += ms
	// Needed even if no task is due, because the state learns the time from it and forgets what the lease clock ends.
	if _, err := n.apply(command.Tick{}); err != nil {
		return err
	}
	return n.follow()
}

// untilDue returns the milliseconds, at least 1, until something is due.
func (n *node) untilDue() int64 {
	at := int64(math.MaxInt64) // by T
	for _, next := range []func() (int64, bool){n.machine.NextDue, n.machine.NextSlot, n.machine.NextOpening} {
		if t, ok := next(); ok {
			at = min(at, t)
		}
	}
	step := at - n.stamp.T
	for l := range n.machine.Leases() {
		step = min(step, l.EndU-n.stamp.U)
	}
	return max(step, 1)
}

// follow does what a leader does about everything that is due now, and then serves waiting claims. The caller holds
// mu.
func (n *node) follow() error {
	for {
		cmd := n.due()
		if cmd == nil {
			break
		}
		if _, err := n.apply(cmd); err != nil {
			return err
		}
	}
	n.serve()
	return nil
}

// due returns a command for what is due, or nil. Applying it makes that no longer due.
func (n *node) due() command.Command {
	var expired []command.Lease
	for l := range n.machine.Leases() {
		if l.EndU <= n.stamp.U && len(expired) < dueMax {
			expired = append(expired, l)
		}
	}
	if len(expired) > 0 {
		return command.Expire{Items: expired}
	}
	if schedules := n.machine.DueSchedules(n.stamp.T, dueMax); len(schedules) > 0 {
		run := command.RunSchedules{Items: make([]command.ScheduleRun, len(schedules))}
		for i, v := range schedules {
			run.Items[i] = n.slotOf(v)
		}
		return run
	}
	if t, ok := n.machine.NextDue(); ok && t <= n.stamp.T {
		return command.Tick{}
	}
	return nil
}

// slotOf returns the command for a schedule's slot that has come.
func (n *node) slotOf(v *fsm.ScheduleView) command.ScheduleRun {
	run := command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt}
	times, err := cron.Plan{Cron: v.Cron, Timezone: v.Timezone, EveryMS: v.EveryMS}.Read(nil)
	if err != nil { // the API accepted it, so this machine knew the time zone
		run.Skip, run.Next = true, n.stamp.T+unreadableAfter.Milliseconds()
		return run
	}
	run.Next, _ = times.Following(run.Slot, n.stamp.T)
	return run
}
