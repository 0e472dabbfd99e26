package fsm

import (
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/sorted"
)

// Schedules returns all schedules, sorted by name. The slice is never changed.
func (m *Machine) Schedules() []*record.ScheduleView { return m.schedules }

// Schedule returns the schedule of that name, or nil.
func (m *Machine) Schedule(name string) *record.ScheduleView {
	at, known := m.findSchedule(name)
	if !known {
		return nil
	}
	return m.schedules[at]
}

// DueSchedules returns up to limit schedules whose slot is at t or before, earliest first, then by
// name.
func (m *Machine) DueSchedules(t int64, limit int) []*record.ScheduleView {
	var due []*record.ScheduleView
	m.slots.Scan(func(v *record.ScheduleView) bool {
		if v.NextRunAt > t || len(due) >= limit {
			return false
		}
		due = append(due, v)
		return true
	})
	return due
}

// NextSlot returns the earliest slot of all schedules, by T; ok is false without one.
func (m *Machine) NextSlot() (t int64, ok bool) {
	first, ok := m.slots.Min()
	if !ok {
		return 0, false
	}
	return first.NextRunAt, true
}

// newSlots returns an empty index of schedules, ordered by slot and name.
func newSlots() sorted.List[*record.ScheduleView] {
	return sorted.NewList(func(a, b *record.ScheduleView) bool {
		return a.NextRunAt < b.NextRunAt || a.NextRunAt == b.NextRunAt && a.Name < b.Name
	})
}

func (m *saved) findSchedule(name string) (at int, known bool) {
	return slices.BinarySearchFunc(m.schedules, name, func(v *record.ScheduleView, name string) int {
		return strings.Compare(v.Name, name)
	})
}

// setSchedule creates or replaces a schedule.
func (m *Machine) setSchedule(c command.SetSchedule) Result {
	now := m.Stamp().T
	v := &record.ScheduleView{Schedule: c.Schedule, Version: m.moment(), CreatedAt: now, UpdatedAt: now}
	if v.Paused {
		v.NextRunAt, v.NextWall = 0, 0
	}
	at, known := m.findSchedule(v.Name)
	all := slices.Clone(m.schedules)
	switch {
	case known:
		was := all[at]
		v.Version = max(v.Version, was.Version+1)
		v.CreatedAt, v.LastTaskID, v.LastRunAt = was.CreatedAt, was.LastTaskID, was.LastRunAt
		v.KeepDone(was)
		m.excludeSchedule(was)
		all[at] = v
	case len(all) >= record.SchedulesMax:
		return Result{Code: CodeInvalidRequest}
	default:
		all = slices.Insert(all, at, v)
	}
	m.schedules = all
	m.includeSchedule(v)
	m.tellBy(event.ScheduleSet, v.Name, c.By)
	return Result{Schedule: v, Created: !known}
}

// deleteSchedule removes a schedule. Its tasks stay.
func (m *Machine) deleteSchedule(c command.DeleteSchedule) Result {
	at, known := m.findSchedule(c.Name)
	if !known {
		return Result{Code: CodeScheduleNotFound}
	}
	m.excludeSchedule(m.schedules[at])
	m.schedules = slices.Delete(slices.Clone(m.schedules), at, at+1)
	m.tellBy(event.ScheduleDeleted, c.Name, c.By)
	return Result{}
}

// runSchedules runs the slots that are still due. It copies the list only once.
func (m *Machine) runSchedules(c command.RunSchedules) Result {
	var result Result
	var all []*record.ScheduleView
	for i := range c.Items {
		item := &c.Items[i]
		at, known := m.findSchedule(item.Name)
		if !known || !m.waitsFor(m.schedules[at], item) {
			continue
		}
		if all == nil {
			all = slices.Clone(m.schedules)
			m.schedules = all
		}
		m.excludeSchedule(all[at])
		v, submitted := m.runSlot(all[at], item)
		all[at] = v
		m.includeSchedule(v)
		if submitted.Task != nil {
			result.Submitted = append(result.Submitted, submitted)
		}
	}
	return result
}

// waitsFor reports whether the schedule waits for the item's slot, and the slot has come or moves.
func (m *saved) waitsFor(v *record.ScheduleView, item *command.ScheduleRun) bool {
	if v.Version != item.Version || v.NextRunAt != item.Slot || item.Slot == 0 {
		return false
	}
	return item.Move || item.Slot <= m.Stamp().T && (item.Next == 0 || item.Next > item.Slot)
}

// runSlot submits the task of the slot, unless the slot is skipped. It returns the new state of
// the schedule and what it submitted.
func (m *Machine) runSlot(was *record.ScheduleView, item *command.ScheduleRun) (*record.ScheduleView, Submitted) {
	v := *was
	v.NextRunAt, v.NextWall = item.Next, item.NextWall
	if item.Move || m.ranBefore(was, item.Slot) {
		return &v, Submitted{}
	}
	if item.Skip || !v.OverlapAllow && m.lives(v.LastTaskID) {
		passed := max(1, item.Passed)
		v.Skipped += uint64(passed)
		m.tally.SlotsSkipped += int(passed)
		return &v, Submitted{}
	}
	submitted := m.submitOne(&v.Task, new(record.Task), "schedule "+v.Name)
	v.LastTaskID, v.LastRunAt = submitted.Task.ID, item.Slot
	m.tally.SlotsRun++
	return &v, submitted
}

// ranBefore reports whether the slot was over when the schedule was set, and the schedule had
// already submitted a task for it or a later one: the slot was then computed before that ran. This
// does not apply to a slot that moves because of newer time zone data.
func (m *saved) ranBefore(v *record.ScheduleView, slot int64) bool {
	return m.Level() >= record.LevelSlots && slot <= min(v.LastRunAt, v.UpdatedAt)
}

// lives reports whether the task exists and has not ended.
func (m *saved) lives(id uint64) bool {
	t := m.Get(id)
	return t != nil && !t.Status.Ended()
}

// includeSchedule adds a schedule to everything derived.
func (m *derived) includeSchedule(v *record.ScheduleView) {
	if v.NextRunAt != 0 {
		m.slots.Set(v)
	}
	m.bytes += record.BytesOfSchedule(v)
}

// excludeSchedule undoes includeSchedule.
func (m *derived) excludeSchedule(v *record.ScheduleView) {
	if v.NextRunAt != 0 {
		m.slots.Delete(v)
	}
	m.bytes -= record.BytesOfSchedule(v)
}
