package fsm

import (
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// schedule returns the place of the schedule, or -1.
func (s *model) schedule(name string) int {
	return slices.IndexFunc(s.schedules, func(v record.ScheduleView) bool { return v.Name == name })
}

func (s *model) setSchedule(c command.SetSchedule) Result {
	v := record.ScheduleView{Schedule: c.Schedule, Version: s.index, CreatedAt: s.t, UpdatedAt: s.t}
	if v.Paused {
		v.NextRunAt, v.NextWall = 0, 0
	}
	s.tell(event.ScheduleSet, nil, nil, by(v.Name, c.By))
	at := s.schedule(v.Name)
	if at < 0 {
		s.schedules = append(s.schedules, v)
		return Result{Schedule: &v, Created: true}
	}
	was := s.schedules[at]
	if v.Version <= was.Version {
		v.Version = was.Version + 1
	}
	v.CreatedAt, v.LastTaskID, v.LastRunAt = was.CreatedAt, was.LastTaskID, was.LastRunAt
	same := v.Cron == was.Cron && v.Timezone == was.Timezone && v.EveryMS == was.EveryMS
	if same && v.NextRunAt > 0 && v.NextRunAt < was.NextRunAt {
		v.NextRunAt, v.NextWall = was.NextRunAt, was.NextWall
	}
	s.schedules[at] = v
	return Result{Schedule: &v}
}

func (s *model) deleteSchedule(c command.DeleteSchedule) Result {
	at := s.schedule(c.Name)
	if at < 0 {
		return Result{Code: CodeScheduleNotFound}
	}
	s.schedules = slices.Delete(s.schedules, at, at+1)
	s.tell(event.ScheduleDeleted, nil, nil, by(c.Name, c.By))
	return Result{}
}

func (s *model) runSchedules(c command.RunSchedules) Result {
	var r Result
	for _, item := range c.Items {
		at := s.schedule(item.Name)
		if at < 0 || item.Slot == 0 || !item.Move && (item.Slot > s.t || item.Next != 0 && item.Next <= item.Slot) {
			continue
		}
		v := &s.schedules[at]
		if v.Version != item.Version || v.NextRunAt != item.Slot {
			continue
		}
		v.NextRunAt, v.NextWall = item.Next, item.NextWall
		if item.Move || item.Slot <= v.LastRunAt && item.Slot <= v.UpdatedAt {
			continue
		}
		last := s.find(v.LastTaskID)
		if item.Skip || !v.OverlapAllow && last != nil && last.Status < record.StatusCompleted {
			v.Skipped += uint64(max(1, item.Passed))
			s.tally.SlotsSkipped += int(max(1, item.Passed))
			continue
		}
		s.submitter = "schedule " + v.Name
		one := s.submitOne(v.Task)
		s.submitter = ""
		s.tally.SlotsRun++
		v.LastTaskID, v.LastRunAt = one.Task.ID, item.Slot
		r.Submitted = append(r.Submitted, one)
	}
	return r
}

// act counts the tasks that are not what they were.
func (s *model) act(c command.Act) Result {
	var r Result
	for _, id := range c.IDs {
		t := s.find(id)
		if t == nil || !s.selected(c.Filter, t) || c.EndedUntil != 0 && t.CompletedAt > c.EndedUntil {
			continue
		}
		was := s.copy().tasks
		switch c.Action {
		case command.ActionRetry:
			s.retry(command.Retry{ID: id, AddAttempts: c.AddAttempts})
		case command.ActionCancel:
			s.cancel(id)
		case command.ActionDelete:
			s.delete(id)
		}
		if !reflect.DeepEqual(was, s.tasks) {
			r.Acted++
		}
	}
	return r
}

// selected tells whether the filter selects the task.
func (s *model) selected(f record.Filter, t *record.Task) bool {
	for _, l := range f.Labels {
		if !slices.Contains(t.Opts().Labels, l) {
			return false
		}
	}
	step := t.Opts().Step
	return (f.ShareKey == "" || f.ShareKey == t.Opts().ShareKey) && (f.ParentID == 0 || step != nil && step.ParentID == f.ParentID) &&
		(f.Status == 0 || f.Status == t.Status) && (f.Type == "" || f.Type == t.Type) && (f.WorkerID == "" || f.WorkerID == t.WorkerID) &&
		(f.Key == "" || t.Key == f.Key && (!t.Opts().UniqueActive || t.Status < record.StatusCompleted) && s.inWindow(t)) && (f.CreatedAfter == 0 || t.CreatedAt > f.CreatedAfter) && (f.CreatedBefore == 0 || t.CreatedAt < f.CreatedBefore)
}

// compareSchedules compares what can be read of schedules.
func compareSchedules(t rapid.TB, g *generator, m *Machine, s *model) {
	var all, due []*record.ScheduleView
	for _, v := range s.schedules {
		all = append(all, &v)
	}
	slices.SortFunc(all, func(a, b *record.ScheduleView) int { return strings.Compare(a.Name, b.Name) })
	if diff := diffOf(all, m.Schedules()); diff != "" {
		t.Fatalf("schedules (-model +machine):\n%s", diff)
	}
	for _, name := range []string{"s1", "s2", "s3", ""} {
		if at, got := s.schedule(name), m.Schedule(name); (got == nil) != (at < 0) || at >= 0 && got.Name != name {
			t.Fatalf("schedule %q is %+v", name, got)
		}
	}
	by := s.t + pick[int64](g, 0, 1, 1000, dayMS)
	next := int64(0)
	slices.SortStableFunc(all, func(a, b *record.ScheduleView) int { return int(a.NextRunAt - b.NextRunAt) })
	for _, v := range all {
		if v.NextRunAt != 0 && next == 0 {
			next = v.NextRunAt
		}
		if v.NextRunAt != 0 && v.NextRunAt <= by {
			due = append(due, v)
		}
	}
	limit := pick(g, 3, 1, 2)
	if diff := diffOf(due[:min(limit, len(due))], m.DueSchedules(by, limit)); diff != "" {
		t.Fatalf("due by %d, at most %d (-model +machine):\n%s", by, limit, diff)
	}
	if got, ok := m.NextSlot(); got != next || ok != (next != 0) {
		t.Fatalf("the next slot is %d, %v, want %d", got, ok, next)
	}
}
