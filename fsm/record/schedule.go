package record

import "google.golang.org/protobuf/encoding/protowire"

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
	// NextWall is the time on the wall that this slot is for, in ms as if it were in UTC; a
	// release of the time zones that moves the slot leaves it. 0: it is not known.
	NextWall int64
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
	f := To(b)
	f.schedule(v)
	return f.Out
}

// ReadSchedule reads the record.
func ReadSchedule(f *Fields) *ScheduleView {
	v := &ScheduleView{}
	f.schedule(v)
	_ = f.End() // the caller looks at f.Err
	return v
}

func (f *Fields) schedule(v *ScheduleView) {
	v.Code(f, 1)
	f.Uint(2, &v.Version)
	f.ID(3, &v.LastTaskID)
	f.Int(4, &v.LastRunAt)
	f.Uint(5, &v.Skipped)
	f.Int(6, &v.CreatedAt)
	f.Int(7, &v.UpdatedAt)
}

// Code is the field num, a message.
func (s *Schedule) Code(f *Fields, num protowire.Number) {
	m, ok := f.Message(num, true)
	if !ok {
		return
	}
	f.Text(1, &s.Name)
	s.Task.plain(f, 2)
	f.Text(3, &s.Cron)
	f.Text(4, &s.Timezone)
	f.Int(5, &s.EveryMS)
	f.Bool(6, &s.OverlapAllow)
	f.Bool(7, &s.CatchUpSkip)
	f.Bool(8, &s.Paused)
	f.Int(9, &s.NextRunAt)
	f.Int(10, &s.NextWall)
	f.EndMessage(m)
}

// KeepDone keeps a schedule that replaces was from going back to a slot that is
// done: who set it may have looked at the clock before that slot ran.
func (v *ScheduleView) KeepDone(was *ScheduleView) {
	samePlan := v.Cron == was.Cron && v.Timezone == was.Timezone && v.EveryMS == was.EveryMS
	if samePlan && v.NextRunAt != 0 && v.NextRunAt < was.NextRunAt {
		v.NextRunAt, v.NextWall = was.NextRunAt, was.NextWall
	}
}
