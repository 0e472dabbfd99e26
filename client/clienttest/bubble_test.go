package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// runIn runs a worker until the test ends; handler is called for each attempt.
func runIn(t *testing.T, c *client.Client, handler func(context.Context, *client.Job[Mail]) error) {
	t.Helper()
	w, err := client.NewWorker(c, client.WorkerConfig{ID: "w1", Lease: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	client.Handle(w, "mail", handler)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// In a bubble all time is virtual: a handler takes longer than its lease, which is extended, and the backoff after it
// passes while the test sleeps. Consecutive bubbles, and a server outside of any bubble, share nothing.
func TestTicking_inABubble(t *testing.T) {
	t.Parallel()
	outside := clienttest.New(t)
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := clienttest.New(t, clienttest.Ticking())
			runIn(t, s.Client(), func(ctx context.Context, job *client.Job[Mail]) error {
				select {
				case <-time.After(5 * time.Minute):
				case <-ctx.Done():
					t.Errorf("attempt %d: %v", job.Attempt, context.Cause(ctx))
				}
				if job.Attempt == 1 {
					return errors.New("line busy")
				}
				return nil
			})
			task := mail()
			task.Backoff = &client.Backoff{Initial: time.Hour, Jitter: client.NoJitter}
			id := submit(t, s, task)
			for _, want := range []struct {
				at     time.Duration
				status client.TaskStatus
				tries  int
			}{
				{4 * time.Minute, client.StatusClaimed, 1},
				{6 * time.Minute, client.StatusScheduled, 1},
				{64 * time.Minute, client.StatusScheduled, 1},
				{66 * time.Minute, client.StatusClaimed, 2},
				{71 * time.Minute, client.StatusCompleted, 2},
			} {
				<-time.After(time.Until(begun.Add(want.at)))
				synctest.Wait()
				if got := wantStatus(t, s, id, want.status); got.Attempts != want.tries {
					t.Errorf("after %v it is in attempt %d", want.at, got.Attempts)
				}
			}
			if now := s.Now(); !now.Equal(time.Now()) {
				t.Errorf("the server's clock says %v, the bubble's %v", now, time.Now())
			}
			s.Advance(25 * time.Hour)
			if _, err := s.Client().Get(t.Context(), id); !errors.Is(err, client.ErrTaskNotFound) {
				t.Errorf("after its retention: %v", err)
			}
		})
	}
	submit(t, outside, mail())
}

// A clock that stands still works in a bubble, too; another client connects with Dial.
func TestNew_inABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.New(t)
		c, err := client.New(client.Config{Endpoints: []string{"http://clienttest"}, Dial: s.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cl, err := c.ClaimNext(t.Context(), client.ClaimRequest{WorkerID: "w1", Wait: 40 * time.Second})
		if !errors.Is(err, client.ErrNoTasks) {
			t.Fatalf("got %v, %v", cl, err)
		}
		id := submit(t, s, mail())
		claim(t, s, "w1")
		<-time.After(time.Hour)
		wantStatus(t, s, id, client.StatusClaimed)
		s.Advance(31 * time.Second)
		s.Await(id, client.StatusPending)
	})
}

// A ticking clock also works outside of bubbles.
func TestTicking_byRealTime(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t, clienttest.Ticking())
	task := mail()
	task.RunAt = time.Now().Add(20 * time.Millisecond)
	id := submit(t, s, task)
	if done := s.Await(id, client.StatusPending); s.Now().Before(done.RunAt) {
		t.Error("it is pending before its time")
	}
}

// The server gives the same answers through its URL as through connections within the process.
func TestServer_URL(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	id := submit(t, s, mail())
	c, err := client.New(client.Config{Endpoints: []string{s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(t.Context(), id); err != nil {
		t.Error(err)
	}
	if first, second := s.URL(), s.URL(); first != second {
		t.Errorf("its URL is %s, then %s", first, second)
	}
}

func ExampleTicking() {
	var t example
	defer t.end()

	// In a test this is within synctest.Test, and takes no time.
	s := clienttest.New(&t, clienttest.Ticking())
	begun := s.Now()
	id, err := s.Client().Submit(context.Background(), client.Task{Payload: []byte("1"), RunAt: begun.Add(50 * time.Millisecond)})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	s.Await(id, client.StatusPending)
	fmt.Println(s.Now().Sub(begun) >= 50*time.Millisecond)
	// Output: true
}
