package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// checkTimes compares the indexes by time with the tasks.
func (m *Machine) checkTimes() error {
	var scheduled, expiring, removing []index.Moment
	var own, others [record.StatusCancelled + 1][]index.Moment // ended tasks, and ended steps
	ended := int64(0)
	for id, t := range m.tasks.All() {
		if t.Status == record.StatusScheduled {
			scheduled = append(scheduled, index.Moment{At: t.RunAt, ID: id})
		}
		if o := t.Options; o != nil && o.ExpiresAt != 0 && (t.Attempts == 0 || o.ExpiresAgain) && t.Status != record.StatusClaimed && t.CompletedAt == 0 {
			at := o.ExpiresAt
			if o.SignalUntil != 0 {
				at = min(at, o.SignalUntil)
			}
			expiring = append(expiring, index.Moment{At: at, ID: id})
		} else if o != nil && o.SignalUntil != 0 {
			expiring = append(expiring, index.Moment{At: o.SignalUntil, ID: id})
		}
		if t.RemoveAt != 0 {
			removing = append(removing, index.Moment{At: t.RemoveAt, ID: id})
		}
		switch s := t.Opts().Step; {
		case !t.Status.Ended():
			continue
		case s != nil: // it counts with its parent, and goes with it
			if m.tasks.Get(s.ParentID).Status.Ended() {
				ended += record.HeldBytes(t)
			}
			others[t.Status] = append(others[t.Status], index.Moment{At: t.CompletedAt, ID: id})
			continue
		default:
			own[t.Status] = append(own[t.Status], index.Moment{At: t.CompletedAt, ID: id})
		}
		ended += record.HeldBytes(t)
	}
	if m.EndedBytes() != ended || len(m.ends.leaving) > 0 {
		return fmt.Errorf("ended tasks take %d bytes, want %d; %v are leaving", m.EndedBytes(), ended, m.ends.leaving)
	}
	for _, x := range []struct {
		name string
		line index.Timeline
		want []index.Moment
	}{
		{"scheduled", m.times.scheduled, scheduled},
		{"expiring", m.times.expiring, expiring},
		{"to be removed", m.ends.removing, removing},
		{"completed", m.ends.completed.Own, own[record.StatusCompleted]},
		{"failed", m.ends.failed.Own, own[record.StatusFailed]},
		{"cancelled", m.ends.cancelled.Own, own[record.StatusCancelled]},
		{"completed steps", m.ends.completed.Others, others[record.StatusCompleted]},
		{"failed steps", m.ends.failed.Others, others[record.StatusFailed]},
		{"cancelled steps", m.ends.cancelled.Others, others[record.StatusCancelled]},
	} {
		if got := slices.Collect(x.line.All()); !slices.Equal(got, inOrder(x.want)) {
			return fmt.Errorf("%s are %v, want %v", x.name, got, x.want)
		}
	}
	return nil
}

// inOrder sorts the moments.
func inOrder(moments []index.Moment) []index.Moment {
	slices.SortFunc(moments, func(a, b index.Moment) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	return moments
}

// checkGone compares what is derived of removed tasks with their records.
func (m *Machine) checkGone() error {
	var forgetting []index.Moment
	keys, over := 0, 0
	for id, g := range m.gone.table.All() {
		forgetting = append(forgetting, index.Moment{At: g.ForgetU, ID: id})
		if m.Get(id) != nil || id >= m.header.NextID || !g.Status.Ended() {
			return fmt.Errorf("task %d is gone, and there, or was never, or had not ended", id)
		}
		if g.Key != "" && (g.KeyUntil == 0 || g.KeyUntil > m.header.Stamp.T) {
			keys++
			if other, _ := m.gone.of(g.KeyName()); other != id {
				return fmt.Errorf("key %q leads to removed task %d, task %d had it", g.KeyName(), other, id)
			}
		} else if g.Key != "" {
			over++ // free by time, and perhaps still in the index
		}
	}
	if got := slices.Collect(m.gone.forgetting.All()); !slices.Equal(got, inOrder(forgetting)) || m.gone.keys.Len() < keys || m.gone.keys.Len() > keys+over {
		return fmt.Errorf("%d keys, to be forgotten are %v; want %d and %v", m.gone.keys.Len(), got, keys, forgetting)
	}
	if len(forgetting) > m.gone.max {
		return fmt.Errorf("%d removed tasks are remembered, at most %d", len(forgetting), m.gone.max)
	}
	return nil
}

// story plays one command an entry. Its clocks go on only when it is told.
type story struct {
	t *testing.T
	m *Machine
	record.Stamp
	index uint64
}

// storyEpoch is when a story begins, by T.
const storyEpoch = 1_700_000_000_000

func newStory(t *testing.T) *story {
	s := &story{t: t, m: New(), Stamp: record.Stamp{U: 1, T: storyEpoch}}
	s.do(command.SetLevel{Level: 1})
	return s
}

// wait lets both clocks go on.
func (s *story) wait(ms int64) { s.U, s.T = s.U+ms, s.T+ms }

// do applies the command and checks every invariant.
func (s *story) do(c command.Command) Result {
	s.t.Helper()
	s.index++
	r := mustApplyTo(s.t, s.m, testEntry{s.index, s.Stamp, []command.Command{c}}).Results[0]
	mustCheck(s.t, s.m)
	return r
}

// submit adds the task, of type mail with the default of attempts if it says nothing, and
// returns its id.
func (s *story) submit(n record.NewTask) uint64 {
	s.t.Helper()
	n.Type = cmp.Or(n.Type, "mail")
	n.MaxAttempts = cmp.Or(n.MaxAttempts, record.DefaultAttempts)
	r := s.do(command.Submit{Tasks: []record.NewTask{n}}).Submitted[0]
	if !r.Created {
		s.t.Fatalf("submit %+v: got task %+v", n, r.Task)
	}
	return r.Task.ID
}

// claim claims the task for w1 and returns the hold.
func (s *story) claim(id uint64) command.Hold {
	s.t.Helper()
	r := s.do(command.ClaimTask{ID: id, WorkerID: "w1"})
	if r.Code != "" {
		s.t.Fatalf("claim task %d: %s", id, r.Code)
	}
	return command.Hold{ID: id, WorkerID: "w1", Token: r.Claims[0].Token}
}

// must applies the command and fails the test if it was refused.
func (s *story) must(c command.Command) Result {
	s.t.Helper()
	r := s.do(c)
	if r.Code != "" {
		s.t.Fatalf("%T: %s", c, r.Code)
	}
	return r
}

// refuse applies the command and fails the test unless it is refused so.
func (s *story) refuse(c command.Command, want Code) Result {
	s.t.Helper()
	r := s.do(c)
	if r.Code != want || want == "" {
		s.t.Errorf("%T: code %q, want %q", c, r.Code, want)
	}
	return r
}

// status fails the test unless the task has the status.
func (s *story) status(id uint64, want record.Status) *record.Task {
	s.t.Helper()
	t := s.m.Get(id)
	if t == nil || t.Status != want {
		s.t.Fatalf("task %d is %+v, want it %v", id, t, want)
	}
	return t
}

// due fails the test unless the next tick has something to do at want by T, 0 =
// never.
func (s *story) due(want int64) {
	s.t.Helper()
	if at, ok := s.m.NextDue(); at != want || ok != (want != 0) {
		s.t.Errorf("next due at %d, %v; want %d", at, ok, want)
	}
}
