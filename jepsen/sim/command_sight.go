package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/cron"
)

// realSight is real of schedules, actions and the trail.
func (c *command) realSight() fsm.Command {
	switch c.verb {
	case verbAct:
		return c.realAct()
	case verbSetSchedule:
		return fsm.SetSchedule{Schedule: c.schedule.real()}
	case verbDeleteSchedule:
		return fsm.DeleteSchedule{Name: c.schedule.name}
	case verbRunSchedules:
		r := fsm.RunSchedules{Items: make([]fsm.ScheduleRun, len(c.runs))}
		for i, one := range c.runs {
			r.Items[i] = fsm.ScheduleRun{Name: one.name, Version: one.version, Slot: one.slot, Next: one.next, Skip: one.skip}
		}
		return r
	default:
		return fsm.SetTrail{Bytes: c.bounds.bytes, AgeMS: c.bounds.ageMS}
	}
}

func (c *command) realAct() fsm.Act {
	a := fsm.Act{IDs: c.ids, Filter: c.filter.real(), AddAttempts: c.add, Action: fsm.ActionDelete}
	switch c.action {
	case verbRetry:
		a.Action = fsm.ActionRetry
	case verbCancel:
		a.Action = fsm.ActionCancel
	default:
	}
	return a
}

func (f *filter) real() fsm.Filter {
	r := fsm.Filter{Type: f.kind, WorkerID: f.worker, Labels: realLabels(f.labels), CreatedAfter: f.after, CreatedBefore: f.before, ParentID: f.of}
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		if s.String() == f.status {
			r.Status = s
		}
	}
	return r
}

func (s *schedule) real() fsm.Schedule {
	return fsm.Schedule{
		Name: s.name, Task: realTasks([]newTask{s.task})[0], Cron: s.cron, EveryMS: s.everyMS,
		OverlapAllow: s.overlap, CatchUpSkip: s.skipLate, Paused: s.paused, NextRunAt: s.next,
	}
}

// plan is when the schedule runs.
func (s *schedule) plan() cron.Plan { return cron.Plan{Cron: s.cron, EveryMS: s.everyMS} }

// period is the time between its slots: those by cron are drawn so that it is
// always the same.
func (s *schedule) period() int64 {
	switch s.cron {
	case "":
		return s.everyMS
	case minutely:
		return 60_000
	default:
		return 5 * 60_000
	}
}

const (
	minutely     = "* * * * *"
	fiveMinutely = "*/5 * * * *"
)
