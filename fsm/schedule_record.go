package fsm

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

func appendScheduleRecord(b []byte, v *ScheduleView) []byte {
	b = appendScheduleField(b, 1, &v.Schedule)
	b = putUint(b, 2, v.Version)
	b = putID(b, 3, v.LastTaskID)
	b = putInt(b, 4, v.LastRunAt)
	b = putUint(b, 5, v.Skipped)
	b = putInt(b, 6, v.CreatedAt)
	return putInt(b, 7, v.UpdatedAt)
}

func decodeScheduleRecord(r *fieldReader) *ScheduleView {
	v := &ScheduleView{}
	for r.next() {
		switch r.num {
		case 1:
			v.Schedule = r.schedule()
		case 2:
			v.Version = r.uint(math.MaxUint64)
		case 3:
			v.LastTaskID = r.id()
		case 4:
			v.LastRunAt = r.int64()
		case 5:
			v.Skipped = r.uint(math.MaxUint64)
		case 6:
			v.CreatedAt = r.int64()
		case 7:
			v.UpdatedAt = r.int64()
		default:
			r.unknown()
		}
	}
	return v
}

func (s *snapshotReader) schedule(r *fieldReader) error {
	v := decodeScheduleRecord(r)
	if r.err != nil {
		return r.err
	}
	all := s.m.schedules
	switch {
	case v.Name == "":
		return fmt.Errorf("%w: a schedule without a name", ErrCorrupt)
	case len(all) == schedulesMax:
		return fmt.Errorf("%w: more than %d schedules", ErrCorrupt, schedulesMax)
	case len(all) > 0 && v.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: schedule %q behind %q", ErrCorrupt, v.Name, all[len(all)-1].Name)
	case v.LastTaskID >= s.m.header.NextID:
		return fmt.Errorf("%w: schedule %q: task %d was never given out", ErrCorrupt, v.Name, v.LastTaskID)
	case v.Paused && v.NextRunAt != 0:
		return fmt.Errorf("%w: schedule %q is paused and waits for %d", ErrCorrupt, v.Name, v.NextRunAt)
	}
	s.m.schedules = append(all, v)
	s.got.schedules++
	return nil
}

// appendScheduleField appends the field num, a message.
func appendScheduleField(b []byte, num protowire.Number, s *Schedule) []byte {
	mark := len(b)
	b, outer := beginMessage(b, num)
	b = putString(b, 1, s.Name)
	inner := len(b)
	b, start := beginMessage(b, 2)
	b = endOptional(appendNewTask(b, &s.Task), inner, start)
	b = putString(b, 3, s.Cron)
	b = putString(b, 4, s.Timezone)
	b = putInt(b, 5, s.EveryMS)
	b = putBool(b, 6, s.OverlapAllow)
	b = putBool(b, 7, s.CatchUpSkip)
	b = putBool(b, 8, s.Paused)
	return endOptional(putInt(b, 9, s.NextRunAt), mark, outer)
}

// schedule reads the field, a message Schedule.
func (r *fieldReader) schedule() (s Schedule) {
	in := fieldReader{rest: r.single()}
	for in.next() {
		switch in.num {
		case 1:
			s.Name = in.string()
		case 2:
			task := fieldReader{rest: in.single(), plain: true}
			s.Task = decodeNewTask(&task)
			in.within(task.err)
		case 3:
			s.Cron = in.string()
		case 4:
			s.Timezone = in.string()
		case 5:
			s.EveryMS = in.int64()
		case 6:
			s.OverlapAllow = in.bool()
		case 7:
			s.CatchUpSkip = in.bool()
		case 8:
			s.Paused = in.bool()
		case 9:
			s.NextRunAt = in.int64()
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return s
}
