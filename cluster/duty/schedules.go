package duty

import (
	"context"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/zones"
)

const (
	// scheduleRunsMax bounds the slots of one entry: each may submit a task.
	scheduleRunsMax = 1000
	// scheduleRunBytes bounds the params and payloads of those tasks, unless there
	// is only one: between two entries there is a look whether there is room.
	scheduleRunBytes = 8 << 20
	// slotMissedAfter is how late a slot may be done that is not to be made up: 60 s, as
	// the contract has it.
	slotMissedAfter = time.Minute
	// slotsPassedMax bounds the missed slots that one item passes over: finding each of
	// a cron line costs some microseconds.
	slotsPassedMax = 10_000
	// scheduleRetryAfter is when a schedule is looked at again that this node
	// cannot read.
	scheduleRetryAfter = time.Hour
)

// RunSchedules logs the slots of schedules that are due, until ctx ends.
// An item that comes twice, or too late, does nothing (fsm.RunSchedules): so a
// new leader need not know what the old one did.
func (d *Duties) RunSchedules(ctx context.Context) {
	timer := time.NewTimer(Interval)
	defer timer.Stop()
	for {
		timer.Reset(min(d.runDueSlots(ctx), pause.Beat(Interval)))
		select {
		case <-ctx.Done():
			return
		case <-d.slots.earlier:
		case <-timer.C:
		}
	}
}

// runDueSlots logs slots while some are due. It returns how long none is. While
// memory or disk is short nothing is submitted: the slots are late then.
func (d *Duties) runDueSlots(ctx context.Context) time.Duration {
	if err := d.moveSlots(ctx); err != nil {
		d.tryAgain(ctx, "slots of schedules not moved to where the time zones have them", err)
		return RetryInterval
	}
	for range inRow {
		due, now, sleep := d.dueSchedules()
		if len(due) == 0 {
			return sleep
		}
		run := command.RunSchedules{Items: make([]command.ScheduleRun, len(due))}
		if d.cfg.Space.Full() != nil || d.cfg.Knows(run) != nil {
			return Interval
		}
		for i, v := range due {
			run.Items[i] = d.slotOf(v, now)
		}
		// A node may not know what the clocks show, or how many are passed over.
		for _, unknown := range []func(*command.ScheduleRun){
			func(r *command.ScheduleRun) { r.NextWall = 0 },
			func(r *command.ScheduleRun) { r.Passed = 0 },
		} {
			if d.cfg.Knows(run) == nil {
				break
			}
			for i := range run.Items {
				unknown(&run.Items[i])
			}
		}
		if err := d.propose(ctx, run); err != nil {
			d.tryAgain(ctx, "schedules not run", err)
			return RetryInterval
		}
	}
	return RetryInterval
}

// placing is by what slots are where they are: a leadership begins with none.
type placing struct {
	zones    *zones.Data
	restored uint64
	done     bool
}

// moveSlots puts the slots that wait where the time zones of this node have them: once in a
// leadership, as the leader before may have had others, and when the zones or the state are
// others.
func (d *Duties) moveSlots(ctx context.Context) error {
	by := placing{zones: d.cfg.Zones.Current(), restored: d.restored.Load(), done: true}
	if d.placedBy == by {
		return nil
	}
	var all []*fsm.ScheduleView
	d.cfg.Read(func(m *fsm.Machine) { all = m.Schedules() })
	run := command.RunSchedules{}
	for i, v := range all {
		if item, moved := d.moveOf(v); moved {
			run.Items = append(run.Items, item)
		}
		if len(run.Items) < scheduleRunsMax && i < len(all)-1 || len(run.Items) == 0 {
			continue
		}
		if d.cfg.Knows(run) != nil {
			return nil // until the feature level is raised, which is looked at again
		}
		if err := d.propose(ctx, run); err != nil {
			return err
		}
		run.Items = nil
	}
	d.placedBy = by
	return nil
}

// moveOf returns what moves the slot of the schedule to where the time zones have it; moved
// is false if it is there.
func (d *Duties) moveOf(v *fsm.ScheduleView) (_ command.ScheduleRun, moved bool) {
	times, err := planOf(v).Read(d.cfg.Zones.Current())
	if err != nil {
		return command.ScheduleRun{}, false // its slot is passed over when it comes
	}
	next, _ := times.Again(v.NextRunAt, v.NextWall, v.LastRunAt)
	if next == v.NextRunAt {
		return command.ScheduleRun{}, false
	}
	d.cfg.Logger.Info("the time zones have a slot elsewhere", "schedule", v.Name, "timezone", v.Timezone,
		"slot", time.UnixMilli(v.NextRunAt).UTC(), "moved_to", time.UnixMilli(next).UTC())
	return command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt, Next: next, NextWall: times.Wall(next), Move: true}, true
}

func planOf(v *fsm.ScheduleView) cron.Plan {
	return cron.Plan{Cron: v.Cron, Timezone: v.Timezone, EveryMS: v.EveryMS}
}

// dueSchedules returns the schedules whose slot has come by now, a bounded
// number, or else how long none comes.
func (d *Duties) dueSchedules() (due []*fsm.ScheduleView, now int64, sleep time.Duration) {
	d.cfg.Read(func(m *fsm.Machine) {
		now = d.now(m).T
		next, some := m.NextSlot()
		d.slots.plan(next, some)
		switch {
		case !some:
			sleep = Interval
		case next > now:
			sleep = untilT(next, now)
		default:
			due = fewBytes(m.DueSchedules(now, scheduleRunsMax))
		}
	})
	return due, now, sleep
}

// fewBytes returns the first of the schedules, as many as scheduleRunBytes allows.
func fewBytes(due []*fsm.ScheduleView) []*fsm.ScheduleView {
	size := 0
	for i, v := range due {
		if size += len(v.Task.Params) + len(v.Task.Payload); size > scheduleRunBytes && i > 0 {
			return due[:i]
		}
	}
	return due
}

// slotOf returns what is to be done, at now, of the slot that the schedule waits
// for. What was missed is one task, whatever the number of slots, and the next
// slot is one to come; or, if nothing is to be made up, no task but that of the last
// slot that has come, unless it is too late as well.
func (d *Duties) slotOf(v *fsm.ScheduleView, now int64) (run command.ScheduleRun) {
	run = command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt}
	times, err := planOf(v).Read(d.cfg.Zones.Current())
	if err != nil {
		// The leader that let it in knew the time zone; perhaps the next one does.
		d.cfg.Logger.Error("a schedule cannot be read: its slot is passed over", "schedule", v.Name, "error", err)
		run.Skip, run.Next = true, now+scheduleRetryAfter.Milliseconds()
		return run
	}
	defer func() { run.NextWall = times.Wall(run.Next) }()
	// Below the feature level at which slots move this one is run where it was put. What it
	// stands for by the zones of now is done with it.
	stands, _ := times.Again(run.Slot, v.NextWall, v.LastRunAt)
	if v.CatchUpSkip {
		latest, passed := times.Latest(run.Slot, now, slotsPassedMax)
		switch late := now-latest > slotMissedAfter.Milliseconds(); {
		case late:
			run.Skip, run.Passed = true, passed+1
			run.Next, _ = times.Next(latest)
			return run
		case passed > 0: // the last one is done next
			run.Skip, run.Passed, run.Next = true, passed, latest
			return run
		}
	}
	run.Next, _ = times.Following(max(run.Slot, stands), now)
	return run
}
