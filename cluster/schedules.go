package cluster

import (
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// scheduleRunsMax bounds the slots in one entry, each of which may submit a task.
	scheduleRunsMax = 1000
	// scheduleRunBytes bounds the params and payloads of those tasks, unless there is only
	// one, because space is checked between entries.
	scheduleRunBytes = 8 << 20
	// slotMissedAfter is the delay after which a slot counts as missed: 60 s, as
	// documented.
	slotMissedAfter = time.Minute
	// slotsPassedMax bounds the missed slots that one item skips, because finding each slot
	// of a cron line takes some microseconds.
	slotsPassedMax = 10_000
	// scheduleRetryAfter is when a schedule that this node cannot read is checked again.
	scheduleRetryAfter = time.Hour
)

// runSchedules logs the slots of schedules that are due, until the leadership ends. An item that
// comes twice or too late has no effect (command.RunSchedules), so a new leader need not know what
// the old one did.
func (d *duties) runSchedules() {
	timer := time.NewTimer(dutyInterval)
	defer timer.Stop()
	for {
		timer.Reset(min(d.runDueSlots(), pause.Beat(dutyInterval)))
		select {
		case <-d.ctx.Done():
			return
		case <-d.slots.earlier:
		case <-timer.C:
		}
	}
}

// runDueSlots logs slots while some are due, and returns the time until the next is. While memory
// or disk is short nothing is submitted, so slots run late.
func (d *duties) runDueSlots() time.Duration {
	if err := d.moveSlots(); err != nil {
		d.tryAgain("slots of schedules not moved to where the time zones have them", err)
		return retryInterval
	}
	for range inRow {
		due, now, sleep := d.dueSchedules()
		if len(due) == 0 {
			return sleep
		}
		run := command.RunSchedules{Items: make([]command.ScheduleRun, len(due))}
		if d.node.space.Full() != nil {
			return dutyInterval
		}
		for i, v := range due {
			run.Items[i] = d.slotOf(v, now)
		}
		if err := d.propose(run); err != nil {
			d.tryAgain("schedules not run", err)
			return retryInterval
		}
	}
	return retryInterval
}

// moveSlots moves waiting slots to the times that they have by this node's time zones: once per
// leadership, as the previous leader may have had other data, and when the zones or the state are
// replaced.
func (d *duties) moveSlots() error {
	by := placing{zones: d.node.cfg.Zones.Current(), restored: d.restored.Load(), done: true}
	if d.placedBy == by {
		return nil
	}
	var all []*fsm.ScheduleView
	d.read(func(m *fsm.Machine) { all = m.Schedules() })
	run := command.RunSchedules{}
	for i, v := range all {
		if item, moved := d.moveOf(v); moved {
			run.Items = append(run.Items, item)
		}
		if len(run.Items) < scheduleRunsMax && i < len(all)-1 || len(run.Items) == 0 {
			continue
		}
		if err := d.propose(run); err != nil {
			return err
		}
		run.Items = nil
	}
	d.placedBy = by
	return nil
}

// moveOf returns the item that moves the schedule's slot to its time by the time zones; moved is
// false if that has not changed.
func (d *duties) moveOf(v *fsm.ScheduleView) (_ command.ScheduleRun, moved bool) {
	times, err := planOf(v).Read(d.node.cfg.Zones.Current())
	if err != nil {
		return command.ScheduleRun{}, false // its slot is skipped when it comes
	}
	next, _ := times.Again(v.NextRunAt, v.NextWall, v.LastRunAt)
	if next == v.NextRunAt {
		return command.ScheduleRun{}, false
	}
	d.node.logger.Info("the time zones have a slot elsewhere", "schedule", v.Name, "timezone", v.Timezone,
		"slot", time.UnixMilli(v.NextRunAt).UTC(), "moved_to", time.UnixMilli(next).UTC())
	return command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt, Next: next, NextWall: times.Wall(next), Move: true}, true
}

func planOf(v *fsm.ScheduleView) cron.Plan {
	return cron.Plan{Cron: v.Cron, Timezone: v.Timezone, EveryMS: v.EveryMS}
}

// dueSchedules returns a bounded number of schedules whose slot has come by now, or else the time
// until the next one.
func (d *duties) dueSchedules() (due []*fsm.ScheduleView, now int64, sleep time.Duration) {
	d.read(func(m *fsm.Machine) {
		now = d.now(m).T
		next, some := m.NextSlot()
		d.slots.plan(next, some)
		switch {
		case !some:
			sleep = dutyInterval
		case next > now:
			sleep = untilT(next, now)
		default:
			due = fewBytes(m.DueSchedules(now, scheduleRunsMax))
		}
	})
	return due, now, sleep
}

// fewBytes returns as many of the schedules as scheduleRunBytes allows.
func fewBytes(due []*fsm.ScheduleView) []*fsm.ScheduleView {
	size := 0
	for i, v := range due {
		if size += v.Task.ValueBytes(); size > scheduleRunBytes && i > 0 {
			return due[:i]
		}
	}
	return due
}

// slotOf returns what to do at now about the slot that the schedule waits for. Missed slots
// are made up by one task, whatever their number, and the next slot is in the future. If
// they are not to be made up, only the last slot that has come submits a task, unless that
// is too late as well.
func (d *duties) slotOf(v *fsm.ScheduleView, now int64) (run command.ScheduleRun) {
	run = command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt}
	times, err := planOf(v).Read(d.node.cfg.Zones.Current())
	if err != nil {
		// The leader that accepted it knew the time zone; the next one may, too.
		d.node.logger.Error("a schedule cannot be read: its slot is passed over", "schedule", v.Name, "error", err)
		run.Skip, run.Next = true, now+scheduleRetryAfter.Milliseconds()
		return run
	}
	defer func() { run.NextWall = times.Wall(run.Next) }()
	// The zones may have been replaced since the slots were moved. The slot that this one
	// stands for in the current zones is then done, too.
	stands, _ := times.Again(run.Slot, v.NextWall, v.LastRunAt)
	if v.CatchUpSkip {
		latest, passed := times.Latest(run.Slot, now, slotsPassedMax)
		switch late := now-latest > slotMissedAfter.Milliseconds(); {
		case late:
			run.Skip, run.Passed = true, passed+1
			run.Next, _ = times.Next(latest)
			return run
		case passed > 0: // the last one follows next
			run.Skip, run.Passed, run.Next = true, passed, latest
			return run
		}
	}
	run.Next, _ = times.Following(max(run.Slot, stands), now)
	return run
}
