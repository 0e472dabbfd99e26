package record

import "google.golang.org/protobuf/encoding/protowire"

// SchedulesMax bounds the number of schedules, because a change copies their list.
const SchedulesMax = 10_000

// Schedule submits a task repeatedly. Exactly one of Cron and EveryMS is set. It is never
// changed in place.
type Schedule struct {
	Name string // 1 to 128 of A-Z a-z 0-9 _ . : -
	// Task is submitted for each slot, with its steps. Neither it nor they have a Key, RunAt or
	// ExpiresAt.
	Task     NewTask
	Cron     string // as given
	Timezone string // IANA name; "" = UTC
	EveryMS  int64
	// OverlapAllow submits even while the last task has not ended; otherwise the slot is
	// skipped.
	OverlapAllow bool
	// CatchUpSkip skips missed slots; otherwise one task is submitted for all of them
	// together.
	CatchUpSkip bool
	Paused      bool
	// NextRunAt is the next slot, by T; 0 = none, because it is paused or there are no more
	// slots.
	NextRunAt int64
	// NextWall is the wall clock time of that slot, in ms as if it were UTC, or 0 if
	// unknown. It stays the same when new time zone data moves the slot.
	NextWall int64
}

// ScheduleView is the saved state of a schedule. A *ScheduleView from a Machine is read-only;
// a change creates a new one.
type ScheduleView struct {
	Schedule
	// Version is the moment of the entry that set it last; higher if needed, so that it
	// grows whenever the schedule is replaced.
	Version    uint64
	LastTaskID uint64 // 0 = none yet
	LastRunAt  int64  // slot of that task, by T; 0 = none yet
	Skipped    uint64 // slots skipped since Version, because they were missed or the last task had not ended
	CreatedAt  int64
	UpdatedAt  int64 // when it was set last
}

// BytesOfSchedule estimates the memory of a schedule. Its tasks share their data with it.
func BytesOfSchedule(v *ScheduleView) int64 {
	n := scheduleBytes + len(v.Name) + len(v.Cron) + len(v.Timezone) + v.Task.DataBytes()
	if p := v.Task.Parent; p != nil {
		n += newParentBytes
		for i := range p.Steps {
			s := &p.Steps[i]
			n += newStepBytes + len(s.Name) + placeBytes*len(s.DependsOn) + s.Task.DataBytes()
		}
	}
	return int64(n)
}

// DataBytes estimates the memory of what the task of a schedule refers to, without its steps.
func (t *NewTask) DataBytes() int {
	o := t.Options()
	n := len(t.Type) + len(t.Params) + len(t.Payload) + o.textBytes()
	if t.Backoff != nil {
		n += backoffBytes
	}
	for _, l := range t.Labels {
		n += labelBytes + len(l.Name) + len(l.Value)
	}
	return n
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

// Code reads or writes field num, a message.
func (s *Schedule) Code(f *Fields, num protowire.Number) {
	m, ok := f.Message(num, true)
	if !ok {
		return
	}
	f.Text(1, &s.Name)
	s.Task.field(f, 2, false)
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

// KeepDone keeps a schedule that replaces was from returning to a slot that is done,
// because the caller may have computed NextRunAt before that slot ran.
func (v *ScheduleView) KeepDone(was *ScheduleView) {
	samePlan := v.Cron == was.Cron && v.Timezone == was.Timezone && v.EveryMS == was.EveryMS
	if samePlan && v.NextRunAt != 0 && v.NextRunAt < was.NextRunAt {
		v.NextRunAt, v.NextWall = was.NextRunAt, was.NextWall
	}
}
