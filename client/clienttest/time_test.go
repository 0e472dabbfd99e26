package clienttest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

func TestServer_Advance_expiresLeases(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	id := submit(t, s, mail())
	first := claim(t, s, "w1") // 30 s
	s.Advance(30*time.Second - time.Millisecond)
	wantStatus(t, s, id, client.StatusClaimed)
	s.Advance(time.Millisecond)
	wantStatus(t, s, id, client.StatusScheduled) // for a second
	s.Advance(time.Second)
	wantStatus(t, s, id, client.StatusPending)
	if _, err := first.Extend(t.Context(), time.Minute, nil); !errors.Is(err, client.ErrStaleClaim) {
		t.Errorf("an extend after the lease: %v", err)
	}

	second := claim(t, s, "w2")
	if second.Token <= first.Token {
		t.Errorf("tokens %d, then %d", first.Token, second.Token)
	}
	if err := first.Complete(t.Context(), nil); !errors.Is(err, client.ErrWrongWorker) {
		t.Errorf("a complete while another worker has the task: %v", err)
	}
	if err := second.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if log := wantStatus(t, s, id, client.StatusCompleted).AttemptsLog; len(log) != 2 || log[0].Outcome != "expired" {
		t.Errorf("attempts: %+v", log)
	}
}

func TestServer_Advance_startsAndExpiresTasks(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t, clienttest.StartAt(time.Date(2030, 5, 1, 8, 0, 0, 0, time.UTC)))
	delayed, urgent := mail(), mail()
	delayed.RunAt = s.Now().Add(time.Hour)
	urgent.ExpiresAt = s.Now().Add(time.Minute)
	ids := []string{submit(t, s, delayed), submit(t, s, urgent)}
	wantStatus(t, s, ids[0], client.StatusScheduled)
	s.Advance(time.Hour - 1) // is rounded up
	wantStatus(t, s, ids[0], client.StatusPending)
	if at := wantStatus(t, s, ids[1], client.StatusFailed).CompletedAt; !at.Equal(urgent.ExpiresAt) {
		t.Errorf("it failed at %v, not when it expired", at)
	}
	s.Advance(15 * 24 * time.Hour)
	if _, err := s.Client().Get(t.Context(), ids[1]); !errors.Is(err, client.ErrTaskNotFound) {
		t.Errorf("after its retention: %v", err)
	}
}

// waiting starts a claim that waits, and returns once it does.
func waiting(t *testing.T, s *clienttest.Server, worker string) <-chan *client.Claim {
	t.Helper()
	got := make(chan *client.Claim, 1)
	go func() {
		c, err := s.Client().ClaimNext(t.Context(), client.ClaimRequest{WorkerID: worker, Types: []string{"mail"}, Wait: time.Minute})
		if err != nil {
			t.Errorf("the claim that waits: %v", err)
		}
		got <- c
	}()
	s.AwaitWaiting(1)
	return got
}

func TestServer_waitingClaimIsWokenBySubmitAndAdvance(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	got := waiting(t, s, "w1")
	id := submit(t, s, mail())
	c := <-got
	if c == nil || c.Task.ID != id {
		t.Fatalf("claimed %+v, want task %s", c, id)
	}

	got = waiting(t, s, "w2")
	s.Advance(31 * time.Second) // the lease of w1, and the first backoff
	if c = <-got; c == nil || c.Task.ID != id || c.Task.Attempts != 2 {
		t.Fatalf("claimed %+v, want task %s again", c, id)
	}

	got = waiting(t, s, "w3")
	if err := c.Release(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour)
	if c = <-got; c == nil || c.Task.ID != id {
		t.Fatalf("claimed %+v, want what was released", c)
	}
}

func TestServer_steps(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	task := client.Task{TaskType: "report"}
	task.AddStep("read", mail())
	task.AddStep("write", mail(), "read")
	w, err := s.Client().SubmitWorkflow(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, s, w.Steps["write"], client.StatusBlocked)
	for _, step := range []string{"read", "write"} {
		c := claim(t, s, "w1")
		if c.Task.ID != w.Steps[step] {
			t.Fatalf("claimed %s, want step %s", c.Task.ID, step)
		}
		if err := c.Complete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(t, s, w.ID, client.StatusCompleted)
}

func TestServer_Advance_runsEverySlot(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	schedule := client.Schedule{Name: "daily", Task: mail(), Cron: "0 6 * * *", OverlapAllow: true}
	if _, err := s.Client().SetSchedule(t.Context(), schedule); err != nil {
		t.Fatal(err)
	}
	s.Advance(3 * 24 * time.Hour)
	all, err := s.Client().List(t.Context(), "")
	if err != nil || len(all) != 3 {
		t.Fatalf("%d tasks, %v, want 3", len(all), err)
	}
	for i, task := range all {
		if want := clienttest.Start().Add(time.Duration(24*i+6) * time.Hour); !task.CreatedAt.Equal(want) {
			t.Errorf("task %d was submitted at %v, want %v", i, task.CreatedAt, want)
		}
	}
}

// Settings that tasks do not have come from the server's defaults, as in a cluster.
func TestServer_hasDefaults(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	if _, err := s.Client().SetDefaults(t.Context(), client.TypeSettings{Lease: new(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	id := submit(t, s, mail())
	task, err := s.Client().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if task.InForce == nil || task.InForce.Lease != time.Minute {
		t.Errorf("in force %+v", task.InForce)
	}
}

func TestServer_Advance_refillsRateLimits(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	perSecond := 1.0
	if _, err := s.Client().SetType(t.Context(), "mail", client.TypeSettings{RateLimit: &perSecond}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		submit(t, s, mail())
	}
	claim(t, s, "w1")
	got := waiting(t, s, "w2")
	s.Advance(time.Second)
	if c := <-got; c == nil || c.Task.ID != "2" {
		t.Errorf("claimed %+v, want task 2", c)
	}
}
