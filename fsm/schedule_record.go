package fsm

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

func appendScheduleRecord(b []byte, v *ScheduleView) []byte {
	b = appendScheduleField(b, 1, &v.Schedule)
	b = wire.PutUint(b, 2, v.Version)
	b = wire.PutID(b, 3, v.LastTaskID)
	b = wire.PutInt(b, 4, v.LastRunAt)
	b = wire.PutUint(b, 5, v.Skipped)
	b = wire.PutInt(b, 6, v.CreatedAt)
	return wire.PutInt(b, 7, v.UpdatedAt)
}

func decodeScheduleRecord(r *fieldReader) *ScheduleView {
	v := &ScheduleView{}
	for r.Next() {
		switch r.Num {
		case 1:
			v.Schedule = r.schedule()
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

func (s *snapshotReader) schedule(r *fieldReader) error {
	v := decodeScheduleRecord(r)
	if r.Err != nil {
		return r.Err
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

// schedule reads the field, a message Schedule.
func (r *fieldReader) schedule() (s Schedule) {
	in := fieldsOf(r.Single())
	for in.Next() {
		switch in.Num {
		case 1:
			s.Name = in.Text()
		case 2:
			task := fieldsOf(in.Single())
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
