package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Schedules returns all schedules, sorted by name. The slice is never changed.
func (m *Machine) Schedules() []*record.ScheduleView { return m.schedules.all }

// Schedule returns the schedule of that name, or nil.
func (m *Machine) Schedule(name string) *record.ScheduleView { return m.schedules.named(name) }

// DueSchedules returns up to limit schedules whose slot is at t or before, earliest first, then by
// name.
func (m *Machine) DueSchedules(t int64, limit int) []*record.ScheduleView {
	return m.schedules.due(t, limit)
}

// NextSlot returns the earliest slot of all schedules, by T; ok is false without one.
func (m *Machine) NextSlot() (t int64, ok bool) { return m.schedules.next() }

// setSchedule creates or replaces a schedule.
func setSchedule(m *Machine, c command.SetSchedule) Result {
	now := m.Stamp().T
	v := &record.ScheduleView{Schedule: c.Schedule, Version: m.moment(), CreatedAt: now, UpdatedAt: now}
	if v.Paused {
		v.NextRunAt, v.NextWall = 0, 0
	}
	at, known := m.schedules.find(v.Name)
	all := slices.Clone(m.schedules.all)
	switch {
	case known:
		was := all[at]
		v.Version = max(v.Version, was.Version+1)
		v.CreatedAt, v.LastTaskID, v.LastRunAt = was.CreatedAt, was.LastTaskID, was.LastRunAt
		v.KeepDone(was)
		m.schedules.exclude(was)
		all[at] = v
	case len(all) >= record.SchedulesMax:
		return Result{Code: CodeInvalidRequest}
	default:
		all = slices.Insert(all, at, v)
	}
	m.schedules.all = all
	m.schedules.include(v)
	m.tellBy(event.ScheduleSet, v.Name, c.By)
	return Result{Schedule: v, Created: !known}
}

// deleteSchedule removes a schedule. Its tasks stay.
func deleteSchedule(m *Machine, c command.DeleteSchedule) Result {
	at, known := m.schedules.find(c.Name)
	if !known {
		return Result{Code: CodeScheduleNotFound}
	}
	m.schedules.exclude(m.schedules.all[at])
	m.schedules.all = slices.Delete(slices.Clone(m.schedules.all), at, at+1)
	m.tellBy(event.ScheduleDeleted, c.Name, c.By)
	return Result{}
}

// runSchedules runs the slots that are still due, up to the first one whose task has too many
// steps for the rest of the command. It copies the list only once.
func runSchedules(m *Machine, c command.RunSchedules) Result {
	var result Result
	var all []*record.ScheduleView
	for i, start := 0, m.changed; i < len(c.Items); i++ {
		item := &c.Items[i]
		at, known := m.schedules.find(item.Name)
		if !known || !waitsFor(m, m.schedules.all[at], item) {
			continue
		}
		if !item.Move && m.changed-start+m.schedules.all[at].Task.Count() > changesMax {
			break // the leader proposes it again, with those behind it
		}
		if all == nil {
			all = slices.Clone(m.schedules.all)
			m.schedules.all = all
		}
		m.schedules.exclude(all[at])
		v, submitted := runSlot(m, all[at], item)
		all[at] = v
		m.schedules.include(v)
		if submitted.Task != nil {
			result.Submitted = append(result.Submitted, submitted)
		}
	}
	return result
}

// waitsFor reports whether the schedule waits for the item's slot, and the slot has come or moves.
func waitsFor(m *Machine, v *record.ScheduleView, item *command.ScheduleRun) bool {
	if v.Version != item.Version || v.NextRunAt != item.Slot || item.Slot == 0 {
		return false
	}
	return item.Move || item.Slot <= m.Stamp().T && (item.Next == 0 || item.Next > item.Slot)
}

// runSlot submits the task of the slot, unless the slot is skipped. It returns the new state of
// the schedule and what it submitted.
func runSlot(m *Machine, was *record.ScheduleView, item *command.ScheduleRun) (*record.ScheduleView, Submitted) {
	v := *was
	v.NextRunAt, v.NextWall = item.Next, item.NextWall
	if item.Move || ranBefore(m, was, item.Slot) {
		return &v, Submitted{}
	}
	if item.Skip || !v.OverlapAllow && lives(m, v.LastTaskID) {
		passed := max(1, item.Passed)
		v.Skipped += uint64(passed)
		m.tally.SlotsSkipped += int(passed)
		return &v, Submitted{}
	}
	submitted := submitOne(m, &v.Task, "schedule "+v.Name)
	v.LastTaskID, v.LastRunAt = submitted.Task.ID, item.Slot
	m.tally.SlotsRun++
	return &v, submitted
}

// ranBefore reports whether the slot was over when the schedule was set, and the schedule had
// already submitted a task for it or a later one: the slot was then computed before that ran. This
// does not apply to a slot that moves because of newer time zone data.
func ranBefore(m *Machine, v *record.ScheduleView, slot int64) bool {
	return slot <= min(v.LastRunAt, v.UpdatedAt)
}

// lives reports whether the task exists and has not ended.
func lives(m *Machine, id uint64) bool {
	t := m.Get(id)
	return t != nil && !t.Status.Ended()
}
