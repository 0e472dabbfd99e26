package fsm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

func TestMachine_Patches(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	labels := []record.Label{{Name: "a", Value: "1"}, {Name: "b", Value: ""}}
	id := s.submit(record.NewTask{Labels: labels, Priority: 3})
	next := s.submit(record.NewTask{Priority: 4})
	s.wait(5)

	r := s.must(command.Patch{ID: id, SetPriority: true, Priority: 5})
	if r.Task.Priority != 5 || r.Task.UpdatedAt != s.T || !cmp.Equal(r.Task.Opts().Labels, labels) {
		t.Errorf("another priority makes it %+v", r.Task)
	}
	if got := s.must(command.ClaimNext{WorkerID: "w1", Limit: 1}).Claims[0].Task.ID; got != id {
		t.Errorf("task %d is claimed before task %d", got, id)
	}
	s.must(command.Release{Hold: command.Hold{ID: id, WorkerID: "w1"}})

	other := []record.Label{{Name: "c", Value: "2"}}
	if r := s.must(command.Patch{ID: id, SetLabels: true, Labels: other}); !cmp.Equal(r.Task.Opts().Labels, other) || r.Task.Priority != 5 {
		t.Errorf("other labels make it %+v", r.Task)
	}
	if r := s.must(command.Patch{ID: id, SetLabels: true}); r.Task.Options != nil {
		t.Errorf("without labels it has %+v", r.Task.Options)
	}
	if s.m.Get(next).Status != record.StatusPending {
		t.Error("another task changed")
	}
}

func TestMachine_PatchesRunAt(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	id := s.submit(record.NewTask{})
	for _, c := range []struct {
		at   int64
		want record.Status
	}{
		{s.T + 100, record.StatusScheduled},
		{s.T + 200, record.StatusScheduled},
		{s.T, record.StatusPending},
		{s.T + 100, record.StatusScheduled},
		{0, record.StatusPending},
		{s.T - 100, record.StatusPending},
	} {
		r := s.must(command.Patch{ID: id, SetRunAt: true, RunAt: c.at})
		if r.Task.Status != c.want || r.Task.RunAt != c.at {
			t.Errorf("run_at %d: %v, runs at %d", c.at, r.Task.Status, r.Task.RunAt)
		}
		if c.want == record.StatusScheduled {
			s.due(c.at)
		} else {
			s.due(0)
		}
	}
}

func TestMachine_RefusesPatches(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	ended := func(end func(command.Hold) command.Command) uint64 {
		h := s.claim(s.submit(record.NewTask{}))
		s.must(end(h))
		return h.ID
	}
	claimed := s.claim(s.submit(record.NewTask{})).ID
	completed := ended(func(h command.Hold) command.Command { return command.Complete{Hold: h} })
	failed := ended(func(h command.Hold) command.Command { return command.Fail{Hold: h, Permanent: true} })
	cancelled := s.submit(record.NewTask{})
	s.must(command.Cancel{ID: cancelled})
	for id, want := range map[uint64]Code{
		claimed:   CodeTaskAlreadyClaimed,
		completed: CodeTaskCompleted,
		failed:    CodeTaskFailed,
		cancelled: CodeTaskCancelled,
		999:       CodeTaskNotFound,
	} {
		before := s.m.Get(id)
		if before != nil {
			before = s.m.copyOf(before)
		}
		s.refuse(command.Patch{ID: id, SetPriority: true, Priority: 9, SetRunAt: true, SetLabels: true, Labels: []record.Label{{Name: "a", Value: "b"}}}, want)
		if diff := cmp.Diff(before, s.m.Get(id)); diff != "" {
			t.Errorf("a refused patch changed the task (-before +after):\n%s", diff)
		}
	}
}

// "The last that a worker reported with extend."
func TestMachine_KeepsProgress(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	h := s.claim(s.submit(record.NewTask{}))
	s.must(command.Extend{Hold: h, Progress: []byte(`{}`)})
	before := s.m.Bytes()
	s.must(command.Extend{Hold: h, Progress: []byte(`{"done":1}`)})
	if got := s.m.Bytes() - before; got != int64(len(`{"done":1}`)-len(`{}`)) {
		t.Errorf("progress takes %d bytes", got)
	}
	s.must(command.Extend{Hold: h})
	s.must(command.Fail{Hold: h})
	s.claim(h.ID)
	s.refuse(command.Extend{Hold: h, Progress: []byte(`2`)}, CodeStaleClaim)
	if got := string(s.m.Get(h.ID).Opts().Progress); got != `{"done":1}` {
		t.Errorf("progress is %s", got)
	}
}
