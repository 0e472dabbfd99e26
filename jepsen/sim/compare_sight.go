package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// sightDiffers is differs for schedules and actions.
func sightDiffers(got *fsm.Result, want *model.Answer) string {
	switch {
	case got.Created != want.Created:
		return fmt.Sprintf("created %v, the model has %v", got.Created, want.Created)
	case got.Acted != len(want.Acted):
		return fmt.Sprintf("done with %d tasks, the model with %d", got.Acted, len(want.Acted))
	case (got.Schedule == nil) != (want.Schedule == nil):
		return fmt.Sprintf("a schedule: %v, the model: %v", got.Schedule != nil, want.Schedule != nil)
	case want.Schedule != nil:
		return scheduleDiffers(got.Schedule, want.Schedule)
	}
	return ""
}

func scheduleDiffers(g *fsm.ScheduleView, w *model.Kept) string {
	r := realSchedule(&w.Schedule)
	if g.Name == w.Name && g.EveryMS == w.EveryMS && g.Cron == w.Cron && g.OverlapAllow == w.Overlap && g.CatchUpSkip == w.SkipLate &&
		g.Paused == w.Paused && g.NextRunAt == w.Next && g.Version == w.Version && g.LastTaskID == w.Last && g.LastRunAt == w.LastAt &&
		g.Skipped == w.Skipped && g.CreatedAt == w.CreatedAt && g.UpdatedAt == w.UpdatedAt &&
		g.Task.Type == r.Task.Type && string(g.Task.Params) == string(r.Task.Params) && string(g.Task.Payload) == string(r.Task.Payload) {
		return ""
	}
	return fmt.Sprintf("the schedule is\n    %+v\n  the model has\n    %+v", *g, *w)
}

// schedulesDiffer compares all schedules, and which slot is the next.
func schedulesDiffer(machine *fsm.Machine, m *model.Model) string {
	all := machine.Schedules()
	if len(all) != len(m.Schedules) {
		return fmt.Sprintf("%d schedules, the model has %d", len(all), len(m.Schedules))
	}
	for i, name := range slices.Sorted(maps.Keys(m.Schedules)) {
		if all[i].Name != name {
			return fmt.Sprintf("schedule %q in place of %q", all[i].Name, name)
		}
		if d := scheduleDiffers(all[i], m.Schedules[name]); d != "" {
			return d
		}
	}
	if next, some := machine.NextSlot(); next != m.NextSlot() || some != (next != 0) {
		return fmt.Sprintf("the next slot is %d (%v), in the model %d", next, some, m.NextSlot())
	}
	return ""
}

// eventDiffers compares one event.
func eventDiffers(g *event.Event, w *model.Told) string {
	same := g.Index == w.Index && g.Sub == w.Sub && g.T == w.At && g.Kind.String() == w.Kind && g.TaskID == w.ID && g.Type == w.Of &&
		g.WorkerID == w.Worker && g.Token == w.Token && g.Attempt == w.Attempt
	switch {
	case !same:
	case w.Until != nil && w.Until.SameWait(g.Message):
		return ""
	case w.Until == nil && g.Message == w.Message:
		return ""
	}
	return fmt.Sprintf("the trail has\n    %+v (%v)\n  the model has\n    %v", *g, g.Kind, w)
}

func eventsDiffer(got []event.Event, want []model.Told) string {
	for i := range min(len(got), len(want)) {
		if d := eventDiffers(&got[i], &want[i]); d != "" {
			return d
		}
	}
	switch {
	case len(got) > len(want):
		return fmt.Sprintf("the trail has %+v (%v), the model has no such event", got[len(want)], got[len(want)].Kind)
	case len(got) < len(want):
		return fmt.Sprintf("the trail has no event as the model's %v", &want[len(got)])
	}
	return ""
}

// eventsOf returns the events that the entry added to the trail.
func eventsOf(machine *fsm.Machine, index uint64) []event.Event {
	return readTrail(machine, event.Pos{Index: index - 1, Sub: math.MaxUint32})
}

// readTrail reads what is kept behind the place, page by page.
func readTrail(machine *fsm.Machine, after event.Pos) []event.Event {
	var events []event.Event
	for {
		page := machine.Events(event.Query{After: after, Limit: 1000})
		events = append(events, page.Events...)
		if !page.More {
			return events
		}
		after = page.Next
	}
}

// trailDiffers compares what is kept of the trail with the newest part of all
// that the model told up to the entry. What is gone must be too old.
func trailDiffers(machine *fsm.Machine, m *model.Model, index uint64) string {
	all := m.Trail[:len(m.Trail)-len(m.Since(index+1))]
	got := readTrail(machine, event.Pos{})
	gone := len(all) - len(got)
	if gone < 0 {
		return fmt.Sprintf("%d events are kept, there were only %d", len(got), len(all))
	}
	if d := eventsDiffer(got, all[gone:]); d != "" {
		return d
	}
	if gone > 0 && machine.Stamp().T-all[gone-1].At < m.LeastAge {
		return fmt.Sprintf("the event %v is kept no more at T=%d: too early", &all[gone-1], machine.Stamp().T)
	}
	for _, id := range someTasks(all) {
		var of []model.Told
		for i := range all[gone:] {
			if all[gone+i].ID == id {
				of = append(of, all[gone+i])
			}
		}
		if d := eventsDiffer(machine.TaskEvents(id), of[max(len(of)-100, 0):]); d != "" {
			return fmt.Sprintf("events of task %d: %s", id, d)
		}
	}
	return ""
}

// someTasks returns a bounded number of tasks that the events are about: those
// of the newest ones.
func someTasks(all []model.Told) []uint64 {
	var ids []uint64
	for i := len(all) - 1; i >= 0 && len(ids) < 8; i-- {
		if id := all[i].ID; id != 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// keptTooLong reports whether events are kept that are older than they may be:
// they go in parts of an eighth of their age.
func keptTooLong(machine *fsm.Machine, m *model.Model) string {
	_, oldest := machine.TrailStats()
	if age := m.T - oldest; oldest != 0 && cmp.Less(m.Bounds().AgeMS+m.MostAge/8+1, age) {
		return fmt.Sprintf("an event is kept for %d ms, the bounds are %+v", age, m.Bounds())
	}
	return ""
}
