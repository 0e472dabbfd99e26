package fsm

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// modelEnd is how tasks stood at the end of a minute: of each type, and of all under "".
type modelEnd struct {
	at    int64
	types map[string]record.Minute
}

// noteEnd notes how the tasks stand after an entry.
func (s *model) noteEnd() {
	end := modelEnd{s.t / 60_000, map[string]record.Minute{}}
	for _, t := range s.tasks {
		for _, name := range []string{"", t.Type} {
			m := end.types[name]
			switch t.Status {
			case record.StatusPending:
				if m.Pending++; m.Pending == 1 { // the first one submitted
					m.OldestAt = t.CreatedAt
				}
			case record.StatusClaimed:
				m.Claimed++
			}
			end.types[name] = m
		}
	}
	if n := len(s.ends); n > 0 && s.ends[n-1].at == end.at {
		s.ends = s.ends[:n-1]
	}
	s.ends = append(s.ends, end)
}

// minuteOf returns what events and the tasks say of a minute.
func (s *model) minuteOf(name string, at int64) (m record.Minute) {
	for _, end := range s.ends {
		if end.at <= at {
			m = end.types[name]
		}
	}
	m.At = at
	all := s.trail.events
	for i, e := range all {
		if e.T/60_000 != at || name != "" && e.Type != name {
			continue
		}
		switch e.Kind {
		case event.Submitted:
			m.Submitted++
		case event.Completed:
			m.Completed++
		case event.Expired: // without a claim
			m.Failed++
		case event.Failed:
			// It was the last attempt, unless the next event says how the task goes on.
			if i+1 == len(all) || all[i+1].Index != e.Index || all[i+1].TaskID != e.TaskID || !slices.Contains([]event.Kind{event.Requeued, event.Scheduled, event.Cancelled}, all[i+1].Kind) {
				m.Failed++
			}
		}
	}
	return m
}

// compareHistory: each minute of a history agrees with the events of the trail, all of which the model keeps, and with
// how the tasks stood at its end; and no minute with an event is left out.
func compareHistory(t rapid.TB, m *Machine, s *model) {
	now := record.Stamp{T: s.t + 90_000} // nothing has happened since
	for _, name := range []string{"", "mail", "scan", "video"} {
		v := m.History(name, record.HistoryMinutes, now)
		known := map[int64]bool{}
		for i, got := range v.Minutes {
			got.Times = [record.HistorySpans]record.Quantiles{}
			if want := s.minuteOf(name, v.From/60_000+int64(i)); got != want {
				t.Fatalf("history of %q: %+v, want %+v", name, got, want)
			}
			known[got.At] = true
		}
		if n := len(v.Minutes); n > 0 && v.Minutes[n-1].At != now.T/60_000 {
			t.Fatalf("history of %q ends at %d, not %d", name, v.Minutes[n-1].At, now.T/60_000)
		}
		for _, e := range s.trail.events {
			counts := e.Kind == event.Submitted || e.Kind == event.Completed
			if at := e.T / 60_000; counts && (name == "" || e.Type == name) && at > now.T/60_000-record.HistoryMinutes && !known[at] {
				t.Fatalf("history of %q has no minute %d, with %+v", name, at, e)
			}
		}
	}
}
