package client

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// A shared request counts each of its calls in Acts and, if it is lost, in Unknown.
func TestClient_Stats(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		want := func(when string, want Stats) {
			t.Helper()
			synctest.Wait()
			if got := c.Stats(); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		first := c.hold(0)
		stays := c.submits(t.Context(), "1", "2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		leaves := c.submits(ctx, "3")
		ctx, leave := context.WithCancel(t.Context())
		isCancelled := c.submits(ctx, "4")
		first.say(200, ids("1000"))
		second := c.request(1, "/api/tasks")
		want("two requests", Stats{Requests: 2, Acts: 5})
		leave()
		wantErrors(t, isCancelled, ErrOutcomeUnknown)
		wantErrors(t, leaves, ErrOutcomeUnknown)
		want("two callers left", Stats{Requests: 2, Acts: 5, Unknown: 1})
		second.say(0, "") // it is lost
		synctest.Wait()
		<-time.After(10 * time.Second)
		c.request(2, "/api/tasks").say(200, ids("1", "2", "3", "4"))
		wantErrors(t, stays, nil)
		want("a repeat", Stats{Requests: 3, Repeats: 1, Acts: 5, Unknown: 1})

		// The same for a whole shared request, and for a batch of one caller.
		first = c.hold(3)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lost := c.submits(t.Context(), "1", "2")
		first.say(200, ids("1000"))
		c.request(4, "/api/tasks").say(0, "")
		many := begin(func() error {
			_, err := c.SubmitMany(short, []Task{{Payload: []byte("1")}, {Payload: []byte("2")}})
			return err
		})
		c.request(5, "/api/tasks").say(504, `{"success":false,"error":"E","code":"outcome_unknown","message":"M"}`)
		<-time.After(2 * time.Minute) // the repeat is not answered
		wantErrors(t, many, ErrOutcomeUnknown)
		wantErrors(t, lost, ErrOutcomeUnknown)
		if got := c.Stats(); got.Acts != 5+1+2+2 || got.Unknown != 1+2+2 || got.Requests != int64(c.requests()) {
			t.Errorf("in the end: %+v", got)
		}
	})
}

func TestWorker_Stats(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{MaxAttempts: 1}, wire.Task{MaxAttempts: 5}, wire.Task{}, wire.Task{})
	outcomes := map[string]error{"2": errors.New("no"), "3": errors.New("no"), "4": Permanent(errors.New("no")), "5": Snooze(time.Hour)}
	runWorker(t, o, WorkerConfig{Concurrency: 7, Retry: func(*Task, error) time.Duration { return time.Hour }}, func(w *Worker) {
		Handle(w, "mail", func(_ context.Context, job *Job[mail]) error { return outcomes[job.Task.ID] })
	}, func(t *testing.T, r *running) {
		got, err := json.Marshal(r.Stats())
		want := `{"slots":7,"running":0,"claimed":5,"completed":1,"failed":3,"released":1,"retries":1,"lost":0,"panics":0}`
		if err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	})
}
