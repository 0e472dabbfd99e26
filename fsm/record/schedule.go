package record

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// SchedulesMax bounds the schedules: a change copies the list of them.
const SchedulesMax = 10_000

// Schedule submits a task again and again. Exactly one of Cron and EveryMS is
// set. It is never changed in place.
type Schedule struct {
	Name string // 1 to 128 of A-Z a-z 0-9 _ . : -
	// Task is what is submitted for each slot. It has no Key, RunAt and ExpiresAt.
	Task     NewTask
	Cron     string // as given
	Timezone string // IANA name; "" = UTC
	EveryMS  int64
	// OverlapAllow submits also while the last task has not ended; else the slot
	// is passed over.
	OverlapAllow bool
	// CatchUpSkip passes over slots that were missed; else one task is made up
	// for all of them.
	CatchUpSkip bool
	Paused      bool
	// NextRunAt is the slot that it waits for, by T; 0 = none: it is paused, or
	// its time never comes again.
	NextRunAt int64
}

// ScheduleView is what is saved of a schedule. A *ScheduleView that a Machine
// hands out is read-only, and never changed: a change makes a new one.
type ScheduleView struct {
	Schedule
	// Version is the index of the entry that set it last; higher if need be, so
	// that it grows whenever the schedule is replaced.
	Version    uint64
	LastTaskID uint64 // 0 = none yet
	LastRunAt  int64  // the slot of that task, by T; 0 = none yet
	Skipped    uint64 // slots passed over since Version, as the last task had not ended or they were missed
	CreatedAt  int64
	UpdatedAt  int64 // when it was set last
}

// BytesOfSchedule estimates the memory that a schedule takes. Its tasks share
// the data of theirs with it.
func BytesOfSchedule(v *ScheduleView) int64 {
	t := &v.Task
	n := scheduleBytes + len(v.Name) + len(v.Cron) + len(v.Timezone) +
		len(t.Type) + len(t.Params) + len(t.Payload) + len(t.Group) + len(t.Traceparent)
	if t.Backoff != nil {
		n += backoffBytes
	}
	for _, l := range t.Labels {
		n += labelBytes + len(l.Name) + len(l.Value)
	}
	return int64(n)
}

// AppendSchedule appends the record of the schedule.
func AppendSchedule(b []byte, v *ScheduleView) []byte {
	b = AppendScheduleField(b, 1, &v.Schedule)
	b = wire.PutUint(b, 2, v.Version)
	b = wire.PutID(b, 3, v.LastTaskID)
	b = wire.PutInt(b, 4, v.LastRunAt)
	b = wire.PutUint(b, 5, v.Skipped)
	b = wire.PutInt(b, 6, v.CreatedAt)
	return wire.PutInt(b, 7, v.UpdatedAt)
}

// DecodeSchedule reads the record.
func DecodeSchedule(r *Reader) *ScheduleView {
	v := &ScheduleView{}
	for r.Next() {
		switch r.Num {
		case 1:
			v.Schedule = r.Schedule()
		case 2:
			v.Version = r.Uint(math.MaxUint64)
		case 3:
			v.LastTaskID = r.ID()
		case 4:
			v.LastRunAt = r.Int64()
		case 5:
			v.Skipped = r.Uint(math.MaxUint64)
		case 6:
			v.CreatedAt = r.Int64()
		case 7:
			v.UpdatedAt = r.Int64()
		default:
			r.Unknown()
		}
	}
	return v
}

// AppendScheduleField appends the field num, a message.
func AppendScheduleField(b []byte, num protowire.Number, s *Schedule) []byte {
	mark := len(b)
	b, outer := wire.BeginMessage(b, num)
	b = wire.PutString(b, 1, s.Name)
	inner := len(b)
	b, start := wire.BeginMessage(b, 2)
	b = wire.EndOptional(appendNewTask(b, &s.Task), inner, start)
	b = wire.PutString(b, 3, s.Cron)
	b = wire.PutString(b, 4, s.Timezone)
	b = wire.PutInt(b, 5, s.EveryMS)
	b = wire.PutBool(b, 6, s.OverlapAllow)
	b = wire.PutBool(b, 7, s.CatchUpSkip)
	b = wire.PutBool(b, 8, s.Paused)
	return wire.EndOptional(wire.PutInt(b, 9, s.NextRunAt), mark, outer)
}

// Schedule reads the field, a message Schedule.
func (r *Reader) Schedule() (s Schedule) {
	in := ReaderOf(r.Single())
	for in.Next() {
		switch in.Num {
		case 1:
			s.Name = in.Text()
		case 2:
			task := ReaderOf(in.Single())
			task.plain = true
			s.Task = decodeNewTask(&task)
			in.Within(task.Err)
		case 3:
			s.Cron = in.Text()
		case 4:
			s.Timezone = in.Text()
		case 5:
			s.EveryMS = in.Int64()
		case 6:
			s.OverlapAllow = in.Bool()
		case 7:
			s.CatchUpSkip = in.Bool()
		case 8:
			s.Paused = in.Bool()
		case 9:
			s.NextRunAt = in.Int64()
		default:
			in.Unknown()
		}
	}
	r.Within(in.Err)
	return s
}

// KeepDone keeps a schedule that replaces was from going back to a slot that is
// done: who set it may have looked at the clock before that slot ran.
func (v *ScheduleView) KeepDone(was *ScheduleView) {
	samePlan := v.Cron == was.Cron && v.Timezone == was.Timezone && v.EveryMS == was.EveryMS
	if samePlan && v.NextRunAt != 0 {
		v.NextRunAt = max(v.NextRunAt, was.NextRunAt)
	}
}
