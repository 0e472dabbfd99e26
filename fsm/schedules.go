package fsm

import (
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// schedules holds the schedules, and which of them is due next.
type schedules struct {
	all   []*record.ScheduleView           // sorted by name, at most record.SchedulesMax; slice and views are copy on write
	slots index.List[*record.ScheduleView] // those that are not paused, by their next slot
	bytes int64                            // memory of all
}

// reset empties what is derived.
func (s *schedules) reset() { s.slots, s.bytes = newSlots(), 0 }

// newSlots returns an empty index of schedules, ordered by slot and name.
func newSlots() index.List[*record.ScheduleView] {
	return index.NewList(func(a, b *record.ScheduleView) bool {
		return a.NextRunAt < b.NextRunAt || a.NextRunAt == b.NextRunAt && a.Name < b.Name
	})
}

func (s *schedules) find(name string) (at int, known bool) {
	return slices.BinarySearchFunc(s.all, name, func(v *record.ScheduleView, name string) int {
		return strings.Compare(v.Name, name)
	})
}

// include adds a schedule to everything derived.
func (s *schedules) include(v *record.ScheduleView) {
	if v.NextRunAt != 0 {
		s.slots.Set(v)
	}
	s.bytes += record.BytesOfSchedule(v)
}

// exclude undoes include.
func (s *schedules) exclude(v *record.ScheduleView) {
	if v.NextRunAt != 0 {
		s.slots.Delete(v)
	}
	s.bytes -= record.BytesOfSchedule(v)
}

// named returns the schedule of that name, or nil.
func (s *schedules) named(name string) *record.ScheduleView {
	at, known := s.find(name)
	if !known {
		return nil
	}
	return s.all[at]
}

// due returns up to limit schedules whose slot is at t or before, earliest first, then by
// name.
func (s *schedules) due(t int64, limit int) []*record.ScheduleView {
	var due []*record.ScheduleView
	s.slots.Scan(func(v *record.ScheduleView) bool {
		if v.NextRunAt > t || len(due) >= limit {
			return false
		}
		due = append(due, v)
		return true
	})
	return due
}

// next returns the earliest slot of all schedules, by T; ok is false without one.
func (s *schedules) next() (t int64, ok bool) {
	first, ok := s.slots.Min()
	if !ok {
		return 0, false
	}
	return first.NextRunAt, true
}
