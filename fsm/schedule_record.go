package fsm

import (
	"fmt"
	"math"
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
