package fsm

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// setSchedule is a name, a task as submit has it, and when it runs.
func (a *args) setSchedule() command.SetSchedule {
	s := record.Schedule{
		Name: a.word(), Cron: a.text("cron", ""), Timezone: a.text("zone", ""), EveryMS: a.option("every", 0),
		OverlapAllow: a.text("overlap", "skip") == "allow", CatchUpSkip: a.text("catch_up", "one") == "skip",
		Paused: a.text("paused", "") != "", NextRunAt: a.time("next"),
	}
	s.Task = a.newTasks()[0]
	return command.SetSchedule{Schedule: s, By: a.text("by", "")}
}

// slots are NAME/VERSION/SLOT/NEXT each, perhaps with /skip; NEXT may be never.
// Without any, those that are due.
func (a *args) slots() []command.ScheduleRun {
	var items []command.ScheduleRun
	for _, w := range a.rest() {
		f := strings.Split(w, "/")
		if len(f) < 4 {
			a.t.Fatalf("%q: a slot is NAME/VERSION/SLOT/NEXT", a.line)
		}
		item := command.ScheduleRun{Name: f[0], Version: uint64(a.parse(f[1])), Slot: a.parse(f[2]) + scriptEpoch, Skip: len(f) > 4}
		if f[3] != "never" {
			item.Next = a.parse(f[3]) + scriptEpoch
		}
		items = append(items, item)
	}
	return items
}

// dueSlots returns the slots that the leader would run: one per schedule, for all missed
// ones.
func (s *script) dueSlots() []command.ScheduleRun {
	items := []command.ScheduleRun{}
	for _, v := range s.m.DueSchedules(s.stamp.T, record.SchedulesMax) {
		missed := (s.stamp.T - v.NextRunAt) / v.EveryMS
		items = append(items, command.ScheduleRun{
			Name: v.Name, Version: v.Version, Slot: v.NextRunAt, Next: v.NextRunAt + (missed+1)*v.EveryMS,
			Skip: v.CatchUpSkip && missed > 0,
		})
	}
	return items
}

func (a *args) act() command.Act {
	c := command.Act{Action: map[string]command.Action{"retry": command.ActionRetry, "cancel": command.ActionCancel, "delete": command.ActionDelete}[a.word()]}
	for _, w := range a.rest() {
		c.IDs = append(c.IDs, uint64(a.parse(w)))
	}
	c.AddAttempts = int32(a.option("add", 0))
	c.Filter = a.filter()
	return c
}

func (a *args) filter() record.Filter {
	status, _ := record.ParseStatus(a.text("status", ""))
	return record.Filter{
		Status: status, Type: a.text("type", ""), WorkerID: a.text("worker", ""), Key: a.text("key", ""),
		ParentID: uint64(a.option("parent", 0)), Labels: a.labels(), CreatedAfter: a.time("after"), CreatedBefore: a.time("before"),
		ShareKey: a.text("share", ""),
	}
}

// describeSchedule shows a schedule in a line.
func describeSchedule(v *record.ScheduleView) string {
	words := []string{v.Name + " of " + v.Task.Type}
	add := func(has bool, format string, args ...any) {
		if has {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(v.Cron != "", "cron %q", v.Cron)
	add(v.Timezone != "", "in %s", v.Timezone)
	add(v.EveryMS != 0, "every %d ms", v.EveryMS)
	add(v.OverlapAllow, "overlap allowed")
	add(v.CatchUpSkip, "missed ones skipped")
	add(v.Paused, "paused")
	add(v.NextRunAt != 0, "next at %d", v.NextRunAt-scriptEpoch)
	add(true, "version %d", v.Version)
	add(v.LastTaskID != 0, "last task %d of %d", v.LastTaskID, v.LastRunAt-scriptEpoch)
	add(v.Skipped != 0, "skipped %d", v.Skipped)
	add(true, "created at %d, updated at %d", v.CreatedAt-scriptEpoch, v.UpdatedAt-scriptEpoch)
	return strings.Join(words, ", ")
}
