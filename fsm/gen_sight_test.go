package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// sight is a command of what level 3 brought.
func (g *generator) sight(m *Machine) command.Command {
	switch g.dice(7) {
	case 0, 1:
		return g.setSchedule(m)
	case 2:
		if g.dice(4) == 0 {
			return command.DeleteSchedule{Name: g.scheduleName(), By: g.operator()}
		}
		return g.runSchedules(m)
	case 3:
		return g.runSchedules(m)
	case 6:
		return command.SetTrail{Bytes: pick[int64](g, 1<<20, 300, 2000), AgeMS: pick[int64](g, dayMS, 1000, 60_000)}
	}
	return g.act(m)
}

func (g *generator) scheduleName() string { return pick(g, "s1", "s2", "s3") }

func (g *generator) setSchedule(m *Machine) command.SetSchedule {
	s := record.Schedule{
		Name: g.scheduleName(), Task: g.plainTask(), OverlapAllow: g.dice(3) > 0, CatchUpSkip: g.dice(2) == 0,
		Paused: g.dice(6) == 1, NextRunAt: m.Stamp().T + pick[int64](g, 1, 0, 500, 3000, 0, dayMS),
	}
	if g.dice(3) == 1 {
		s.Task = g.newParent()
		for i := range s.Task.Parent.Steps {
			step := &s.Task.Parent.Steps[i].Task
			step.RunAt, step.ExpiresAt, step.ExpiresAgain = 0, 0, false
		}
	}
	s.Task.Key, s.Task.RunAt, s.Task.ExpiresAt = "", 0, 0
	if g.dice(2) == 0 {
		s.EveryMS = pick[int64](g, 1000, 3000)
	} else {
		s.Cron, s.Timezone = "30 2 * * *", pick(g, "", "Europe/Vienna")
	}
	if g.dice(8) == 1 {
		s.NextRunAt = 0
	}
	s.NextWall = pick(g, s.NextRunAt+3_600_000, 0)
	return command.SetSchedule{Schedule: s, By: g.operator()}
}

// runSchedules runs mostly slots that are due, some of them twice, and sometimes
// ones that are not, or of an earlier version of a schedule.
func (g *generator) runSchedules(m *Machine) command.RunSchedules {
	var c command.RunSchedules
	for i := range 1 + g.dice(4) {
		item := command.ScheduleRun{Name: g.scheduleName(), Version: m.Index(), Slot: m.Stamp().T, Skip: g.dice(5) == 1}
		if item.Skip {
			item.Passed = int64(i)
		}
		due := m.DueSchedules(g.stamp.T, 3)
		if len(due) == 0 || g.dice(8) == 1 {
			due = m.Schedules()
		}
		if len(due) > 0 {
			v := due[(i+g.dice(2))%len(due)]
			item.Name, item.Version, item.Slot = v.Name, v.Version, v.NextRunAt
		}
		switch g.dice(12) {
		case 1:
			item.Version--
		case 2:
			item.Slot--
		}
		if g.dice(6) == 1 {
			item.Move = true
		}
		item.NextWall = pick(g, item.Slot+7000, 0)
		item.Next = item.Slot + pick[int64](g, 1000, 1, 3000, 3000, 0, -1)
		if g.dice(8) == 1 {
			item.Next = 0
		}
		c.Items = append(c.Items, item)
	}
	return c
}

// act acts on some tasks that are there, and some that are not any more.
func (g *generator) act(m *Machine) command.Act {
	c := command.Act{Action: pick(g, command.ActionRetry, command.ActionCancel, command.ActionDelete), Filter: g.filter(m)}
	if g.dice(3) == 1 {
		c.Filter = record.Filter{Labels: g.wantedLabels(m)}
	}
	for range 1 + g.dice(10) {
		c.IDs = append(c.IDs, g.id(m))
	}
	slices.Sort(c.IDs)
	c.IDs = slices.Compact(c.IDs)
	if c.Action == command.ActionRetry {
		c.AddAttempts = int32(g.dice(3))
	}
	if g.dice(5) == 1 {
		c.EndedUntil = m.Stamp().T - int64(g.dice(2000))
	}
	return c
}

// wantedLabels are mostly some that a task has.
func (g *generator) wantedLabels(m *Machine) []record.Label {
	var all [][]record.Label
	for _, t := range m.tasks.All() {
		if labels := t.Opts().Labels; len(labels) > 0 {
			all = append(all, labels)
		}
	}
	if len(all) == 0 || g.dice(4) == 1 {
		return pick(g, []record.Label{{Name: "a", Value: "2"}}, []record.Label{{Name: "b", Value: ""}}, []record.Label{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, []record.Label{{Name: "c", Value: ""}})
	}
	labels := all[g.dice(len(all))]
	return labels[g.dice(len(labels)):]
}

// filter mostly leaves something to select.
func (g *generator) filter(m *Machine) record.Filter {
	var f record.Filter
	created := m.Stamp().T
	if t := m.Get(g.id(m)); t != nil {
		created = t.CreatedAt
	}
	for range g.dice(3) {
		switch g.dice(10) {
		case 0:
			f.Status = pick(g, record.StatusPending, record.StatusScheduled, record.StatusClaimed, record.StatusCompleted, record.StatusFailed, record.StatusCancelled, record.StatusBlocked, record.StatusRunning)
		case 1:
			f.Type = g.taskType()
		case 2:
			f.WorkerID = g.worker()
		case 3:
			f.Key = g.key()
		case 4, 8:
			f.Labels = g.wantedLabels(m)
		case 5:
			f.CreatedAfter = created - int64(g.dice(2))
		case 6:
			f.CreatedBefore = created + int64(g.dice(2))
		case 7:
			f.ParentID = g.parent(m)
		case 9:
			f.ShareKey = pick(g, "ann", "ben")
		}
	}
	return f
}
