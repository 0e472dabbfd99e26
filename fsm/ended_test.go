package fsm

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

func TestMachine_KeepsEndedTasks(t *testing.T) {
	t.Parallel()
	const day = 86_400_000
	complete := func(s *story, id uint64) { s.must(command.Complete{Hold: s.claim(id)}) }
	fail := func(s *story, id uint64) { s.must(command.Fail{Hold: s.claim(id), Permanent: true}) }
	cancel := func(s *story, id uint64) { s.must(command.Cancel{ID: id}) }
	for _, c := range []struct {
		name string
		task record.NewTask
		end  func(*story, uint64)
		want int64 // 0 = for ever
	}{
		{"completed", record.NewTask{}, complete, day},
		{"cancelled", record.NewTask{}, cancel, day},
		{"failed", record.NewTask{}, fail, 14 * day},
		{"its own", record.NewTask{RetentionMS: 5}, complete, 5},
		{"failed, its own", record.NewTask{RetentionMS: 5}, fail, 5},
		{"its type's", record.NewTask{Type: "short"}, complete, 70},
		{"failed, its type's", record.NewTask{Type: "short"}, fail, 70},
		{"its own before its type's", record.NewTask{Type: "short", RetentionMS: 5}, complete, 5},
		{"for ever", record.NewTask{Type: "short", RetentionMS: record.KeepForever}, complete, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.must(command.SetType{Type: "short", Set: record.TypeRetention, Settings: record.TypeSettings{RetentionMS: 70}})
			id := s.submit(c.task)
			s.wait(100)
			c.end(s, id)
			if c.want == 0 {
				s.due(0)
				s.wait(1000 * day)
				s.must(command.Tick{})
				if s.m.Get(id) == nil {
					t.Error("it was removed")
				}
				return
			}
			s.due(s.T + c.want)
			s.wait(c.want - 1)
			s.must(command.Tick{})
			if s.m.Get(id) == nil {
				t.Fatal("it was removed too early")
			}
			s.wait(1)
			s.must(command.Tick{})
			if s.m.Get(id) != nil {
				t.Error("it was not removed")
			}
		})
	}
}

// "0: gone from reads at once": in the same step, whatever ended it. The answer
// still shows the task.
func TestMachine_KeepsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		task record.NewTask
		end  func(*story, uint64) Result
		want record.Status
	}{
		{"completed", record.NewTask{}, func(s *story, id uint64) Result {
			return s.must(command.Complete{Hold: s.claim(id), Result: []byte("1"), Submit: []record.NewTask{{Type: "mail"}}})
		}, record.StatusCompleted},
		{"failed", record.NewTask{MaxAttempts: 1}, func(s *story, id uint64) Result { return s.must(command.Fail{Hold: s.claim(id)}) }, record.StatusFailed},
		{"cancelled", record.NewTask{}, func(s *story, id uint64) Result { return s.must(command.Cancel{ID: id}) }, record.StatusCancelled},
		{"lease expired", record.NewTask{MaxAttempts: 1}, func(s *story, id uint64) Result {
			s.claim(id)
			l, _ := s.m.Lease(id)
			return s.must(command.Expire{Items: []command.Lease{l}})
		}, record.StatusFailed},
		{"not started", record.NewTask{ExpiresAt: 1}, func(s *story, _ uint64) Result { return s.must(command.Tick{}) }, record.StatusFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			c.task.RetentionMS, c.task.Key = record.KeepNone, "k"
			id := s.submit(c.task)
			r := c.end(s, id)
			if r.Task != nil && (r.Task.ID != id || r.Task.Status != c.want || r.Gone || r.Task.CompletedAt != s.T) {
				t.Errorf("the answer shows %+v", r.Task)
			}
			if s.m.Get(id) != nil || s.m.ByKey("k") != nil {
				t.Error("it is there")
			}
			if g := s.m.gone.find(id, s.m.Stamp().U); g == nil || g.Status != c.want || g.Key != "k" {
				t.Errorf("it left %+v", g)
			}
			s.due(0)
		})
	}
}

// "The oldest completed and cancelled ones, then failed ones, are evicted."
func TestMachine_Evicts(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	var ids []uint64
	for range 6 {
		ids = append(ids, s.submit(record.NewTask{Payload: make([]byte, 1000), RetentionMS: record.KeepForever}))
	}
	live := s.submit(record.NewTask{Payload: make([]byte, 1000)})
	end := func(c command.Command) {
		s.must(c)
		s.wait(1)
	}
	end(command.Fail{Hold: s.claim(ids[0]), Permanent: true}) // the oldest, but it failed
	end(command.Complete{Hold: s.claim(ids[3])})
	end(command.Cancel{ID: ids[2]})
	end(command.Fail{Hold: s.claim(ids[4]), Permanent: true})
	s.must(command.Complete{Hold: s.claim(ids[5])}) // at the same time, so by id
	s.must(command.Complete{Hold: s.claim(ids[1])})
	want := []uint64{ids[3], ids[2], ids[1], ids[5], ids[0], ids[4]}

	if r := s.must(command.Evict{Bytes: s.m.EndedBytes()}); r.Evicted != 0 {
		t.Errorf("%d evicted within the bound", r.Evicted)
	}
	var got []uint64
	for s.m.EndedBytes() > 0 {
		if r := s.must(command.Evict{Bytes: s.m.EndedBytes() - 1}); r.Evicted != 1 {
			t.Fatalf("evicted %d to get one byte below, want 1", r.Evicted)
		}
		for _, id := range want {
			if s.m.Get(id) == nil && !slices.Contains(got, id) {
				got = append(got, id)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("evicted %v, want %v", got, want)
	}
	if r := s.must(command.Evict{Bytes: -1}); r.Evicted != 0 || s.m.Get(live) == nil {
		t.Error("evicted what had not ended")
	}
	if s.m.gone.find(ids[0], s.m.Stamp().U) == nil {
		t.Error("an evicted task is not remembered")
	}
}

func TestMachine_EvictIsBounded(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	tasks := make([]record.NewTask, evictMax+1)
	for i := range tasks {
		tasks[i] = record.NewTask{Type: "mail", ExpiresAt: 1}
	}
	s.must(command.Submit{Tasks: tasks})
	s.must(command.Tick{})
	s.must(command.Tick{})
	if r := s.must(command.Evict{}); r.Evicted != evictMax {
		t.Errorf("one entry evicted %d tasks, want %d", r.Evicted, evictMax)
	}
	if r := s.must(command.Evict{}); r.Evicted != 1 || s.m.EndedBytes() != 0 {
		t.Errorf("the next one %d; %d bytes are left", r.Evicted, s.m.EndedBytes())
	}
}

// A task of a type has the type's number of attempts.
func TestMachine_DefaultsOfTheType(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.must(command.SetType{Type: "scan", Set: record.TypeMaxAttempts, Settings: record.TypeSettings{LimitSet: true}})
	s.must(command.SetType{Type: "video", Set: record.TypeMaxAttempts, Settings: record.TypeSettings{LimitSet: true, MaxAttempts: 7}})
	for taskType, want := range map[string]int32{"mail": 3, "scan": 0, "video": 7} {
		if got := s.m.Get(s.submit(record.NewTask{Type: taskType})).MaxAttempts; got != want {
			t.Errorf("%s: %d attempts, want %d", taskType, got, want)
		}
	}
	if got := s.m.Get(s.submit(record.NewTask{Type: "video", MaxAttempts: 2})).MaxAttempts; got != 2 {
		t.Errorf("its own: %d attempts, want 2", got)
	}
}
