package fsm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// modelTrail has everything that ever happened.
type modelTrail struct {
	events []event.Event
	sub    uint32           // events of this entry
	bounds command.SetTrail // zero: never set
}

// tell adds what happened to the task, nil if it is about none, in the claim,
// nil if it is about none.
func (s *model) tell(kind event.Kind, t, claim *record.Task, message string) {
	e := event.Event{Pos: event.Pos{Index: s.index, Sub: s.trail.sub}, T: s.t, Kind: kind, Message: message}
	if t != nil {
		e.TaskID, e.Type = t.ID, t.Type
	}
	if claim != nil {
		e.WorkerID, e.Token, e.Attempt = claim.WorkerID, claim.Token, claim.Attempts
	}
	if kind == event.TypeChanged {
		e.Type = strings.Fields(message)[0]
	}
	s.trail.events = append(s.trail.events, e)
	s.trail.sub++
}

// by adds to a message who did it.
func by(message, name string) string {
	if name == "" {
		return message
	}
	return strings.TrimSpace(message + " by " + name)
}

// tellWait tells that the task waits for its time, after a claim or not.
func (s *model) tellWait(t, claim *record.Task) {
	s.tell(event.Scheduled, t, claim, "until "+time.UnixMilli(t.RunAt).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// tellEnd tells how the claim of the task ended: the cause, and the task's new
// status. was is the task before the change.
func (s *model) tellEnd(was, t *record.Task) {
	last := lastClaimEnded(t)
	switch last.Outcome {
	case record.OutcomeCompleted:
		s.tell(event.Completed, t, was, "")
	case record.OutcomeFailed:
		s.tell(event.Failed, t, was, last.Error)
	case record.OutcomeReleased:
		s.tell(event.Released, t, was, "")
	case record.OutcomeExpired:
		s.tell(event.LeaseExpired, t, was, "")
		if t.Status == record.StatusFailed {
			s.tell(event.Failed, t, was, "lease expired")
		}
	case record.OutcomeRetried:
		s.tell(event.Retried, t, was, "")
	}
	switch t.Status {
	case record.StatusPending:
		if last.Outcome != record.OutcomeRetried {
			s.tell(event.Requeued, t, was, "")
		}
	case record.StatusScheduled:
		s.tellWait(t, was)
	case record.StatusCancelled:
		s.tell(event.Cancelled, t, was, "")
	}
}

// setTrail changes the bounds.
func (s *model) setTrail(c command.SetTrail) Result {
	if s.trailBounds() != c {
		s.trail.bounds = c
		s.tell(event.TrailChanged, nil, nil, fmt.Sprintf("%d bytes, %d ms", c.Bytes, c.AgeMS))
	}
	return Result{}
}

func (s *model) trailBounds() command.SetTrail {
	if s.trail.bounds == (command.SetTrail{}) {
		return command.SetTrail{Bytes: 64 << 20, AgeMS: dayMS}
	}
	return s.trail.bounds
}

// compareTrail compares the machine's trail with everything that happened: it must be the
// newest part, of the right age and size.
func compareTrail(t rapid.TB, g *generator, m *Machine, s *model) {
	all := s.trail.events
	newest := event.Pos{}
	if n := len(all); n > 0 {
		newest = all[n-1].Pos
	}
	if got := m.NewestEvent(); got != newest || m.TrailBounds() != s.trailBounds() {
		t.Fatalf("newest event %v, want %v; bounds %+v, want %+v", got, newest, m.TrailBounds(), s.trailBounds())
	}
	kept := readTrail(t, g, m, event.Query{})
	gone := len(all) - len(kept)
	if gone < 0 {
		t.Fatalf("%d events, there were only %d", len(kept), len(all))
	}
	sameEvents(t, "trail", all[gone:], kept)
	compareBounds(t, m, s, all[:gone], kept)
	compareEvents(t, g, m, all, gone)
	for id := range s.ids + 2 {
		var want []event.Event
		for _, e := range kept {
			if e.TaskID == id && id != 0 {
				want = append(want, e)
			}
		}
		sameEvents(t, fmt.Sprint("events of task ", id), want[max(0, len(want)-100):], m.TaskEvents(id))
	}
}

// sameEvents compares events. cmp.Diff takes its time also where nothing differs,
// and this is asked after every entry.
func sameEvents(t rapid.TB, what string, want, got []event.Event) {
	if !slices.Equal(want, got) {
		t.Fatalf("%s (-model +machine):\n%s", what, cmp.Diff(want, got))
	}
}

// readTrail reads the trail page by page.
func readTrail(t rapid.TB, g *generator, m *Machine, q event.Query) []event.Event {
	var events []event.Event
	q.Limit = pick(g, 1000, 1, 2, 7)
	for {
		page := m.Events(q)
		if page.Gone || len(page.Events) > q.Limit || page.More && page.Next.Compare(q.After) <= 0 {
			t.Fatalf("%+v gives %+v", q, page)
		}
		events = append(events, page.Events...)
		q.After = page.Next
		if !page.More {
			return events
		}
	}
}

// compareBounds ensures that nothing too old is kept, and that what is gone was
// too old or too much. Whole chunks go, so there is some slack.
func compareBounds(t rapid.TB, m *Machine, s *model, gone, kept []event.Event) {
	bounds := s.trailBounds()
	if len(kept) > 0 {
		if age := s.t - kept[0].T; age >= bounds.AgeMS+s.highest().AgeMS/8+1 {
			t.Fatalf("an event is kept for %d ms, bounds %+v", age, bounds)
		}
	}
	if trailSize(m) > bounds.Bytes && len(m.trail.Chunks()) > 1 {
		t.Fatalf("%d bytes are kept, bounds %+v", trailSize(m), bounds)
	}
	if len(gone) == 0 {
		return
	}
	last := gone[len(gone)-1]
	if was := s.lowest(); s.t-last.T < was.AgeMS && trailSize(m) < was.Bytes-2*int64(m.trail.ChunkBytes) {
		t.Fatalf("the event %+v is gone too early, %d bytes are left, bounds %+v", last, trailSize(m), was)
	}
}

// lowest and highest return what the bounds were at most and at least.
func (s *model) lowest() command.SetTrail {
	return s.extreme(func(a, b int64) int64 { return min(a, b) })
}

func (s *model) highest() command.SetTrail {
	return s.extreme(func(a, b int64) int64 { return max(a, b) })
}

func (s *model) extreme(choose func(a, b int64) int64) command.SetTrail {
	most := command.SetTrail{Bytes: 64 << 20, AgeMS: dayMS}
	for _, e := range s.trail.events {
		if e.Kind != event.TrailChanged {
			continue
		}
		var b command.SetTrail
		if _, err := fmt.Sscanf(e.Message, "%d bytes, %d ms", &b.Bytes, &b.AgeMS); err == nil {
			most.Bytes, most.AgeMS = choose(most.Bytes, b.Bytes), choose(most.AgeMS, b.AgeMS)
		}
	}
	return most
}

// compareEvents goes on behind some place, and selects.
func compareEvents(t rapid.TB, g *generator, m *Machine, all []event.Event, gone int) {
	if len(all) == 0 {
		return
	}
	one := all[g.dice(len(all))]
	q := event.Query{After: one.Pos}
	switch g.dice(4) {
	case 1:
		q.After.Sub = 1<<32 - 1
	case 2:
		q.After.Index += uint64(g.dice(3))
	case 3:
		q.After = event.Pos{}
	}
	one = all[g.dice(len(all))]
	var kinds []event.Kind
	switch g.dice(6) {
	case 1:
		kinds = append(kinds, one.Kind, all[g.dice(len(all))].Kind)[:1+g.dice(2)]
	case 2:
		q.TaskID = one.TaskID
	case 3:
		q.WorkerID = one.WorkerID
	case 4:
		q.Type = one.Type
	case 5:
		q.Type, kinds = "mail", append(kinds, event.TypeChanged)
	}
	for _, kind := range kinds {
		q.Kinds = q.Kinds.With(kind)
	}
	if gone > 0 && q.After != (event.Pos{}) && q.After.Compare(all[gone-1].Pos) < 0 {
		if page := m.Events(q); !page.Gone || len(page.Events) > 0 || gone < len(all) && page.Oldest != all[gone].Pos {
			t.Fatalf("%+v gives %+v, %d events are gone", q, page, gone)
		}
		return
	}
	var want []event.Event
	for _, e := range all[gone:] {
		if e.Compare(q.After) > 0 && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) && (q.TaskID == 0 || q.TaskID == e.TaskID) &&
			(q.WorkerID == "" || q.WorkerID == e.WorkerID) && (q.Type == "" || q.Type == e.Type) {
			want = append(want, e)
		}
	}
	sameEvents(t, fmt.Sprintf("%+v", q), want, readTrail(t, g, m, q))
}

// copy is for a model that goes its own way.
func (t *modelTrail) copy() modelTrail {
	c := *t
	c.events = slices.Clone(t.events)
	return c
}
