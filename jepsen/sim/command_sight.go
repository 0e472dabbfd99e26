package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// realSight is real of schedules, actions and the trail.
func realSight(c *model.Command) command.Command {
	switch c.Verb {
	case model.VerbAct:
		return realAct(c)
	case model.VerbSetSchedule:
		return command.SetSchedule{Schedule: realSchedule(c.Schedule)}
	case model.VerbDeleteSchedule:
		return command.DeleteSchedule{Name: c.Schedule.Name}
	case model.VerbRunSchedules:
		r := command.RunSchedules{Items: make([]command.ScheduleRun, len(c.Runs))}
		for i, one := range c.Runs {
			r.Items[i] = command.ScheduleRun{Name: one.Name, Version: one.Version, Slot: one.Slot, Next: one.Next, Skip: one.Skip}
		}
		return r
	default:
		return command.SetTrail{Bytes: c.Bounds.Bytes, AgeMS: c.Bounds.AgeMS}
	}
}

func realAct(c *model.Command) command.Act {
	a := command.Act{IDs: c.IDs, Filter: realFilter(&c.Filter), AddAttempts: c.Add, Action: command.ActionDelete}
	switch c.Action {
	case model.VerbRetry:
		a.Action = command.ActionRetry
	case model.VerbCancel:
		a.Action = command.ActionCancel
	default:
	}
	return a
}

func realFilter(f *model.Filter) fsm.Filter {
	r := fsm.Filter{Type: f.Kind, WorkerID: f.Worker, Labels: realLabels(f.Labels), CreatedAfter: f.After, CreatedBefore: f.Before, ParentID: f.Of}
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		if s.String() == f.Status {
			r.Status = s
		}
	}
	return r
}

func realSchedule(s *model.Schedule) fsm.Schedule {
	return fsm.Schedule{
		Name: s.Name, Task: realTasks([]model.NewTask{s.Task})[0], Cron: s.Cron, EveryMS: s.EveryMS,
		OverlapAllow: s.Overlap, CatchUpSkip: s.SkipLate, Paused: s.Paused, NextRunAt: s.Next,
	}
}

// planOf is when the schedule runs.
func planOf(s *model.Schedule) cron.Plan { return cron.Plan{Cron: s.Cron, EveryMS: s.EveryMS} }

// periodOf is the time between its slots: those by cron are drawn so that it is
// always the same.
func periodOf(s *model.Schedule) int64 {
	switch s.Cron {
	case "":
		return s.EveryMS
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
