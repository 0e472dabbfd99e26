package fsm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// "What was removed by retention or eviction leaves its id, key, last token and
// outcome for 10 minutes, so that repeats still get their answer."
func TestMachine_SettlesRemovedTasks(t *testing.T) {
	t.Parallel()
	complete := func(h command.Hold) command.Command { return command.Complete{Hold: h} }
	fail := func(h command.Hold) command.Command { return command.Fail{Hold: h, Permanent: true} }
	release := func(h command.Hold) command.Command { return command.Release{Hold: h} }
	extend := func(h command.Hold) command.Command { return command.Extend{Hold: h} }
	withoutToken := func(h command.Hold) command.Hold { return command.Hold{ID: h.ID, WorkerID: h.WorkerID} }
	other := func(h command.Hold) command.Hold { return command.Hold{ID: h.ID, WorkerID: "w2", Token: h.Token + 1} }
	otherWithoutToken := func(h command.Hold) command.Hold { return command.Hold{ID: h.ID, WorkerID: "w2"} }
	same := func(h command.Hold) command.Hold { return h }

	for _, c := range []struct {
		name       string
		end, again func(command.Hold) command.Command
		with       func(command.Hold) command.Hold
		want       Code // "": repeated
	}{
		{"the same complete", complete, complete, same, ""},
		{"the same fail", fail, fail, same, ""},
		{"the same complete without its token", complete, complete, withoutToken, ""},
		{"a complete by another claim", complete, complete, other, CodeTaskCompleted},
		{"a complete by another worker without a token", complete, complete, otherWithoutToken, CodeTaskCompleted},
		{"a fail after the complete", complete, fail, same, CodeTaskCompleted},
		{"a complete after the fail", fail, complete, same, CodeTaskFailed},
		{"a release", complete, release, same, CodeTaskCompleted},
		{"an extend", fail, extend, same, CodeTaskFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			id := s.submit(record.NewTask{Key: "k", RetentionMS: record.KeepNone})
			h := s.claim(id)
			s.must(c.end(h))
			ended := s.do(c.again(c.with(h)))
			if ended.Code != c.want || ended.Repeated != (c.want == "") || !ended.Gone {
				t.Fatalf("answered %q, repeated %v, gone %v; want %q", ended.Code, ended.Repeated, ended.Gone, c.want)
			}
			status := map[bool]record.Status{true: record.StatusCompleted, false: record.StatusFailed}[ended.Task.Status == record.StatusCompleted]
			want := &record.Task{ID: id, Key: "k", Type: "mail", Status: status, WorkerID: "w1", Token: h.Token}
			if diff := cmp.Diff(want, ended.Task); diff != "" {
				t.Errorf("what is known of it (-want +got):\n%s", diff)
			}
			s.wait(goneMS - 1)
			if r := s.do(c.again(c.with(h))); !r.Gone {
				t.Error("it is forgotten too early")
			}
			s.wait(1)
			s.refuse(c.again(c.with(h)), CodeTaskNotFound) // whether or not a tick was there
			s.must(command.Tick{})
			s.refuse(c.again(c.with(h)), CodeTaskNotFound)
			if s.m.gone.table.Len() != 0 {
				t.Error("the tick forgot nothing")
			}
		})
	}
}

func TestMachine_SettlesTasksRemovedWithoutAClaim(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	id := s.submit(record.NewTask{RetentionMS: record.KeepNone})
	h := s.claim(id)
	s.must(command.Fail{Hold: h})
	s.must(command.Cancel{ID: id})
	if r := s.must(command.Fail{Hold: h}); !r.Repeated || !r.Gone || r.Task.WorkerID != "" || r.Task.Token != h.Token {
		t.Errorf("the claim before the end repeats as %+v", r)
	}
	s.refuse(command.Fail{Hold: command.Hold{ID: id, WorkerID: "w1"}}, CodeTaskCancelled) // it did not end the task
	if r := s.must(command.Cancel{ID: id}); !r.Repeated || !r.Gone {
		t.Errorf("cancel repeats as %+v", r)
	}
	done := s.submit(record.NewTask{RetentionMS: record.KeepNone})
	s.must(command.Complete{Hold: s.claim(done)})
	if r := s.refuse(command.Cancel{ID: done}, CodeTaskCompleted); !r.Gone {
		t.Error("a cancel does not say that the task is gone")
	}
	for _, c := range []command.Command{command.Retry{ID: id}, command.Patch{ID: id}, command.Delete{ID: id}, command.ClaimTask{ID: id, WorkerID: "w1"}} {
		s.refuse(c, CodeTaskNotFound)
	}
}

// A repeated complete gets the same follow-ups and claims, also of a task that
// was not kept.
func TestMachine_RemovedTasksKnowWhatTheirEndDid(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	h := s.claim(s.submit(record.NewTask{RetentionMS: record.KeepNone}))
	c := command.Complete{Hold: h, Submit: []record.NewTask{{Type: "mail"}}, Claim: &command.ClaimNext{WorkerID: "w1", Limit: 1}}
	first := s.must(c)
	again := s.must(c)
	if !again.Repeated || !again.Gone || len(again.Submitted) != 1 || again.Submitted[0].Task.ID != first.Submitted[0].Task.ID {
		t.Errorf("submitted %+v, then %+v", first.Submitted, again.Submitted)
	}
	if len(again.Claims) != 1 || again.Claims[0].Token != first.Claims[0].Token || !again.Claims[0].Live {
		t.Errorf("claimed %+v, then %+v", first.Claims, again.Claims)
	}
}

func TestMachine_SubmitsWithTheKeyOfARemovedTask(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	n := record.NewTask{Type: "mail", Key: "k", Params: []byte(`{"a":1}`), RetentionMS: record.KeepNone}
	id := s.submit(n)
	s.must(command.Complete{Hold: s.claim(id)})
	submit := func(n record.NewTask) Submitted {
		return s.must(command.Submit{Tasks: []record.NewTask{n}}).Submitted[0]
	}
	if got := submit(n); got.Created || !got.Gone || !got.SameRequest || got.Task.ID != id || got.Task.Key != "k" || got.Task.Status != record.StatusCompleted {
		t.Errorf("the same submit gets %+v", got)
	}
	for _, other := range []record.NewTask{
		{Type: "scan", Key: "k", Params: n.Params},
		{Type: "mail", Key: "k", Params: []byte(`{"a":2}`)},
		{Type: "mail", Key: "k", Payload: n.Params},
	} {
		if got := submit(other); got.Created || !got.Gone || got.SameRequest {
			t.Errorf("another submit with its key gets %+v", got)
		}
	}
	s.wait(goneMS)
	if got := submit(n); !got.Created {
		t.Errorf("after ten minutes the key gets %+v", got)
	}
	if s.m.gone.table.Len() != 0 || s.m.ByKey("k") == nil {
		t.Error("both have the key")
	}
	deleted := s.submit(record.NewTask{Key: "d"})
	s.must(command.Cancel{ID: deleted})
	s.must(command.Delete{ID: deleted})
	s.submit(record.NewTask{Key: "d"}) // at once
}

// At the bound the oldest make room; those whose time has come are forgotten
// also without ticks.
func TestMachine_BoundsRemovedTasks(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.m.gone.max = 3
	remove := func() uint64 {
		id := s.submit(record.NewTask{RetentionMS: record.KeepNone})
		s.must(command.Cancel{ID: id})
		s.wait(1)
		return id
	}
	var ids []uint64
	for range 5 {
		ids = append(ids, remove())
	}
	for i, id := range ids {
		if known := s.m.gone.find(id, s.m.Stamp().U) != nil; known != (i >= 2) {
			t.Errorf("removed task %d of 5 is known: %v", i+1, known)
		}
	}
	s.wait(goneMS)
	remove()
	if got := s.m.gone.table.Len(); got != 2 {
		t.Errorf("%d are remembered after one more, want it and the last of the others", got)
	}
	remove()
	remove()
	if got := s.m.gone.table.Len(); got != 3 {
		t.Errorf("%d are remembered, want the three new ones", got)
	}
}
