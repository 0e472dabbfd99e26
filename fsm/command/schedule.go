package command

import (
	"math"

	"github.com/claimq/claimq/fsm/record"
)

// SetSchedule creates the schedule, or replaces the one of that name; Result.Created tells
// which. Result.Schedule is the outcome. CodeInvalidRequest if there would be more than
// 10,000.
type SetSchedule struct {
	Schedule record.Schedule
	By       string // as in SetType
}

func (SetSchedule) kind() Kind { return KindSetSchedule }

func (c SetSchedule) about() About {
	return About{Known: true, Schedule: c.Schedule.Name, Submits: []record.NewTask{c.Schedule.Task}}
}

// DeleteSchedule removes the schedule. CodeScheduleNotFound if it does not exist.
type DeleteSchedule struct {
	Name string
	By   string // as in SetType
}

func (DeleteSchedule) kind() Kind { return KindDeleteSchedule }

func (c DeleteSchedule) about() About { return About{Known: true, Schedule: c.Name} }

// RunSchedules runs the slots of schedules that are due. An item takes effect only if its schedule
// still has that version and waits for that slot, and the slot has come by T. So duplicates and
// items of a deposed leader are harmless, and each slot runs once. It stops before the first item
// with which it would submit more than 10,000 tasks, including steps. Result.Submitted has the new
// tasks in the order of their items.
type RunSchedules struct{ Items []ScheduleRun }

func (RunSchedules) kind() Kind { return KindRunSchedules }

func (c RunSchedules) about() About { return About{Changes: len(c.Items)} }

// ScheduleRun is one slot of one schedule. The leader computes Next, because the state
// machine knows no time zones.
type ScheduleRun struct {
	Name    string
	Version uint64
	Slot    int64 // by T: the schedule's NextRunAt
	Next    int64 // by T, later than Slot, or the item has no effect; 0 = never again
	// Skip moves on to Next without a task, because the slot was missed, and with it all
	// others before Next. Passed counts the missed slots together; below 1 means 1.
	Skip   bool
	Passed int64
	// NextWall becomes the schedule's NextWall.
	NextWall int64
	// Move moves on to Next, at any time, without a task and without counting a missed
	// slot, even before Slot has come. It is used when Slot was computed with other time
	// zone data.
	Move bool
}

// code reads or writes the fields of
//
//	message SetSchedule {
//	  Schedule schedule = 1;
//	  string by = 2;             // name of the operator's key
//	}
func (c SetSchedule) code(f fields) (Command, fields) {
	c.Schedule.Code(&f.Fields, 1)
	f.Text(2, &c.By)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message DeleteSchedule {
//	  string name = 1;
//	  string by = 2;             // name of the operator's key
//	}
func (c DeleteSchedule) code(f fields) (Command, fields) {
	f.Text(1, &c.Name)
	f.Text(2, &c.By)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message RunSchedules {
//	  repeated ScheduleRun items = 1;
//	}
//
//	message ScheduleRun {
//	  string name = 1;
//	  uint64 version = 2;
//	  int64 slot = 3;
//	  int64 next = 4;  // 0 never again
//	  bool skip = 5;
//	  int64 passed = 6;  // slots that are skipped; 0 = 1
//	  int64 next_wall = 7;  // what the clocks show then, as if in UTC
//	  bool move = 8;        // the slot is at next, by newer data of the zone
//	}
func (c RunSchedules) code(f fields) (Command, fields) {
	for e := record.Each(); record.Next(&e, &f.Fields, 1, &c.Items, math.MaxInt); {
		run := &c.Items[e.At]
		f.Text(1, &run.Name)
		f.Uint(2, &run.Version)
		f.Int(3, &run.Slot)
		f.Int(4, &run.Next)
		f.Bool(5, &run.Skip)
		f.Int(6, &run.Passed)
		f.Int(7, &run.NextWall)
		f.Bool(8, &run.Move)
	}
	return done(c, &f)
}
