package check

const (
	// undecidedMS is how long a slot may be on its way into the log: then the
	// task is of that slot, and the event of a later time.
	undecidedMS = 10_000
	// quietGapMS is how late the task of a slot may be when nothing was done to
	// the cluster.
	quietGapMS = 10_000
)

// checkSlots gives each task of the schedule a slot of its own that had come,
// the earliest that it can be: slots that were missed have one task together,
// so none is left of those that had come long before the last task.
func (c *trailChecker) checkSlots() {
	s := c.schedule
	if s == nil {
		return
	}
	if c.set == nil || c.set.Index < s.Index {
		c.Violate(RuleTrailSlots, 0, nil, "schedule %s was set at index %d, the trail does not say so", s.Name, s.Index)
		return
	}
	slot := s.FirstMS - s.EveryMS // the last that is taken
	last := c.set.At
	if c.set.Index != s.Index { // once more, by a call whose answer nobody got
		slot = last - undecidedMS
	}
	for _, e := range c.ticks {
		if e.At-last > quietGapMS && c.quiet {
			c.Violate(RuleTrailSlots, e.TaskID, nil, "no task of schedule %s for %d ms, though nothing was done to the cluster", s.Name, e.At-last)
		}
		slot = max(slot+s.EveryMS, slot+(last-undecidedMS-slot)/s.EveryMS*s.EveryMS)
		if slot > e.At {
			c.Violate(RuleTrailSlots, e.TaskID, nil, "schedule %s has more tasks than slots: slot %d had not come, %s", s.Name, slot, tell(e))
			slot -= s.EveryMS
		}
		last = e.At
	}
	if c.gone != nil {
		c.slots = int((c.gone.At-s.FirstMS)/s.EveryMS) + 1
		if c.gone.At-last > quietGapMS && c.quiet {
			c.Violate(RuleTrailSlots, 0, nil, "no task of schedule %s for %d ms before it was deleted", s.Name, c.gone.At-last)
		}
	}
}
