package command

import (
	"slices"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// SetSchedule makes the schedule, or replaces the one of its name. Result.Created
// says which; Result.Schedule is the outcome. CodeInvalidRequest if there
// would be more than 10,000.
type SetSchedule struct {
	Schedule record.Schedule
	By       string // as in SetType
}

func (SetSchedule) kind() Kind { return KindSetSchedule }

func (c SetSchedule) about() About {
	return About{Known: true, Schedule: c.Schedule.Name, Submits: []record.NewTask{c.Schedule.Task}}
}

func (c SetSchedule) needs() uint32 { return needsBy(c.By) }

// DeleteSchedule removes the schedule. CodeScheduleNotFound if there is none.
type DeleteSchedule struct {
	Name string
	By   string // as in SetType
}

func (DeleteSchedule) kind() Kind { return KindDeleteSchedule }

func (c DeleteSchedule) about() About { return About{Known: true, Schedule: c.Name} }

func (c DeleteSchedule) needs() uint32 { return needsBy(c.By) }

// RunSchedules does what slots of schedules are due. An item changes nothing
// unless its schedule still has that version and waits for that slot, which has
// come by T: so duplicates and items of a deposed leader are harmless, and each
// slot is done once. Result.Submitted has the tasks that it made, in the order
// of their items.
type RunSchedules struct{ Items []ScheduleRun }

func (RunSchedules) kind() Kind { return KindRunSchedules }

func (c RunSchedules) needs() uint32 {
	if slices.ContainsFunc(c.Items, func(i ScheduleRun) bool { return i.Passed != 0 }) {
		return record.LevelActs
	}
	return 0
}

func (c RunSchedules) about() About { return About{Changes: len(c.Items)} }

// ScheduleRun is one slot of one schedule. The leader has computed Next: time
// zones are no matter of the state.
type ScheduleRun struct {
	Name    string
	Version uint64
	Slot    int64 // by T: the schedule's NextRunAt
	Next    int64 // by T, after Slot, else the item changes nothing; 0 = never again
	// Skip moves on to Next without a task: the slot was missed, and with it all others
	// before Next. Passed is how many these are together; less than 1 is 1.
	Skip   bool
	Passed int64
}

// appendBody appends
//
//	message SetSchedule {
//	  Schedule schedule = 1;
//	  string by = 2;             // name of the operator's key
//	}
func (c SetSchedule) appendBody(b []byte) []byte {
	b = record.AppendScheduleField(b, 1, &c.Schedule)
	return wire.PutString(b, 2, c.By)
}

func (SetSchedule) decode(r fieldReader) (Command, error) {
	var c SetSchedule
	for r.Next() {
		switch r.Num {
		case 1:
			c.Schedule = r.Schedule()
		case 2:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message DeleteSchedule {
//	  string name = 1;
//	  string by = 2;             // name of the operator's key
//	}
func (c DeleteSchedule) appendBody(b []byte) []byte {
	b = wire.PutString(b, 1, c.Name)
	return wire.PutString(b, 2, c.By)
}

func (DeleteSchedule) decode(r fieldReader) (Command, error) {
	var c DeleteSchedule
	for r.Next() {
		switch r.Num {
		case 1:
			c.Name = r.Text()
		case 2:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
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
//	}
func (c RunSchedules) appendBody(b []byte) []byte { return appendScheduleRuns(b, c.Items) }

func (RunSchedules) decode(r fieldReader) (Command, error) {
	var c RunSchedules
	for r.Next() {
		switch r.Num {
		case 1:
			if c.Items == nil {
				c.Items = make([]ScheduleRun, 0, r.Run())
			}
			in := record.ReaderOf(r.Raw())
			c.Items = append(c.Items, decodeScheduleRun(&in))
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func appendScheduleRuns(b []byte, items []ScheduleRun) []byte {
	for i := range items {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.PutString(b, 1, items[i].Name)
		b = wire.PutUint(b, 2, items[i].Version)
		b = wire.PutInt(b, 3, items[i].Slot)
		b = wire.PutInt(b, 4, items[i].Next)
		b = wire.PutBool(b, 5, items[i].Skip)
		b = wire.EndLength(wire.PutInt(b, 6, items[i].Passed), start)
	}
	return b
}

func decodeScheduleRun(r *record.Reader) (s ScheduleRun) {
	for r.Next() {
		switch r.Num {
		case 1:
			s.Name = r.Text()
		case 2:
			s.Version = r.Uint(1<<64 - 1)
		case 3:
			s.Slot = r.Int64()
		case 4:
			s.Next = r.Int64()
		case 5:
			s.Skip = r.Bool()
		case 6:
			s.Passed = r.Int64()
		default:
			r.Unknown()
		}
	}
	return s
}
