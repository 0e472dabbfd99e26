package fsm

func decodeAct(r *fieldReader) (c Act) {
	for r.next() {
		switch r.num {
		case 1:
			c.Action = Action(r.enum(uint64(ActionDelete)))
		case 2:
			c.IDs = append(c.IDs, r.idElement())
		case 3:
			in := fieldReader{rest: r.single()}
			c.Filter = decodeFilter(&in)
			r.within(in.err)
		case 4:
			c.AddAttempts = r.int32()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeFilter(r *fieldReader) (f Filter) {
	for r.next() {
		switch r.num {
		case 1:
			f.Status = Status(r.enum(uint64(StatusCancelled)))
		case 2:
			f.Type = r.string()
		case 3:
			f.WorkerID = r.string()
		case 4:
			f.Key = r.string()
		case 5:
			f.ParentID = r.id()
		case 6:
			f.Labels = r.label(f.Labels)
		case 7:
			f.CreatedAfter = r.int64()
		case 8:
			f.CreatedBefore = r.int64()
		default:
			r.unknown()
		}
	}
	return f
}

func decodeSetSchedule(r *fieldReader) (c SetSchedule) {
	for r.next() {
		switch r.num {
		case 1:
			c.Schedule = r.schedule()
		case 2:
			c.By = r.string()
		default:
			r.unknown()
		}
	}
	return c
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

func decodeDeleteSchedule(r *fieldReader) (c DeleteSchedule) {
	for r.next() {
		switch r.num {
		case 1:
			c.Name = r.string()
		case 2:
			c.By = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeRunSchedules(r *fieldReader) (c RunSchedules) {
	for r.next() {
		switch r.num {
		case 1:
			if c.Items == nil {
				c.Items = make([]ScheduleRun, 0, r.run())
			}
			in := fieldReader{rest: r.raw()}
			c.Items = append(c.Items, decodeScheduleRun(&in))
			r.within(in.err)
		default:
			r.unknown()
		}
	}
	return c
}

func decodeScheduleRun(r *fieldReader) (s ScheduleRun) {
	for r.next() {
		switch r.num {
		case 1:
			s.Name = r.string()
		case 2:
			s.Version = r.uint(1<<64 - 1)
		case 3:
			s.Slot = r.int64()
		case 4:
			s.Next = r.int64()
		case 5:
			s.Skip = r.bool()
		default:
			r.unknown()
		}
	}
	return s
}

func decodeSetTrail(r *fieldReader) (c SetTrail) {
	for r.next() {
		switch r.num {
		case 1:
			c.Bytes = r.int64()
		case 2:
			c.AgeMS = r.int64()
		default:
			r.unknown()
		}
	}
	return c
}
