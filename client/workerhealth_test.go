package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

func TestWorker_Health(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault reply  // for claims and settling calls; nil: none
		path  string // "": all calls
		bad   string // a part of the error; "": healthy
	}{
		"no tasks":           {},
		"no leader":          {fault: refuses(wire.CodeNoLeader), bad: "claiming for 2m0s without success: claim tasks: E (no_leader)"},
		"settling":           {fault: refuses(wire.CodeNoLeader), path: "/complete", bad: "settling for"},
		"claims that hang":   {fault: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, bad: "claiming for"},
		"slow, but answered": {fault: nil, path: "slow"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			handle := func(ctx context.Context, job *Job[mail]) error {
				if test.path == "slow" {
					<-time.After(10 * time.Minute) // in the only slot
				}
				return nil
			}
			runWorker(t, o, WorkerConfig{Concurrency: 1, StopWait: time.Hour}, func(w *Worker) {
				if w.Health() == nil {
					t.Error("healthy before Run")
				}
				Handle(w, "mail", handle)
				o.fault = func(r request, before bool) reply {
					if before && test.fault != nil && strings.HasSuffix(r.path, test.path) && !strings.HasSuffix(r.path, "/extend") {
						return test.fault
					}
					return nil
				}
			}, func(t *testing.T, r *running) {
				<-time.After(50 * time.Second)
				if err := r.Health(); err != nil {
					t.Errorf("after 50 s: %v", err)
				}
				<-time.After(70 * time.Second)
				err := r.Health()
				if test.bad == "" && err != nil || test.bad != "" && (err == nil || !strings.Contains(err.Error(), test.bad)) {
					t.Errorf("after 2 min: %v", err)
				}
				o.mu.Lock()
				o.fault = nil
				o.mu.Unlock()
				<-time.After(time.Minute)
				if err := r.Health(); err != nil {
					t.Errorf("when it is answered again: %v", err)
				}
			})
		})
	}
}

// If neither the task nor its type has a backoff, the worker sends its own. It asks for a type once a minute.
func TestWorker_sendsItsOwnBackoff(t *testing.T) {
	t.Parallel()
	o := newOffice(
		wire.Task{}, wire.Task{Backoff: &wire.Backoff{InitialMS: 5}}, wire.Task{TaskType: "patient"},
		wire.Task{Attempts: 2, MaxAttempts: 3}, wire.Task{Attempts: 6, MaxAttempts: 0})
	o.types["patient"] = `,"backoff":{"initial_ms":1000}`
	fail := func(context.Context, *Job[mail]) error { return errors.New("no") }
	runWorker(t, o, WorkerConfig{}, func(w *Worker) {
		Handle(w, "mail", fail)
		Handle(w, "patient", fail)
	}, func(t *testing.T, r *running) {
		// It asks for each type by name, because a list of types stops at 1,000.
		if mail, patient, all := len(o.sent(typesPath+"mail")), len(o.sent(typesPath+"patient")), len(o.sent("/api/types")); mail != 1 || patient != 1 || all != 0 {
			t.Errorf("the types were asked for %d and %d times, all of them %d times", mail, patient, all)
		}
		o.mu.Lock()
		o.types["mail"] = `,"backoff":{"initial_ms":1000}`
		o.mu.Unlock()
		<-time.After(2 * backoffsAge)
		o.add(wire.Task{})
		<-time.After(time.Second)
	})
	for id, want := range map[int][2]int64{1: {800, 1200}, 2: {-1, -1}, 3: {-1, -1}, 4: {-1, -1}, 5: {51_200, 76_800}, 6: {-1, -1}} {
		if got := o.task(id); got.Status != "failed" || got.delay < want[0] || got.delay > want[1] {
			t.Errorf("task %d is %s, to be retried in %d ms, want %v", id, got.Status, got.delay, want)
		}
	}
}

// A worker without Retry relies on the server's default, if there is a default; one with Retry calls it.
func TestWorker_backoffOfTheServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		retry func(*Task, error) time.Duration
		want  int64
	}{
		"no Retry": {nil, -1},
		"Retry":    {func(*Task, error) time.Duration { return 7 * time.Millisecond }, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			o.defaults = `{"success":true,"defaults":{"lease_ms":30000,"max_attempts":10,"backoff":{"initial_ms":1000},"retention_ms":1,"failed_retention_ms":1}}`
			runWorker(t, o, WorkerConfig{Retry: test.retry}, func(w *Worker) {
				Handle(w, "mail", func(context.Context, *Job[mail]) error { return errors.New("no") })
			}, func(*testing.T, *running) {})
			if got := o.task(1); got.Status != "failed" || got.delay != test.want {
				t.Errorf("it is %s, to be retried in %d ms, want %d", got.Status, got.delay, test.want)
			}
		})
	}
}

// A server that does not tell the backoffs does not delay a failure for long.
func TestWorker_failsWithoutKnowingTheTypes(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{})
	o.fault = func(r request, before bool) reply {
		if before && strings.HasPrefix(r.path, typesPath) {
			return says(503, "")
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { return errors.New("no") })
	}, func(t *testing.T, r *running) { <-time.After(backoffsTimeout + time.Millisecond) })
	if a, b := o.task(1), o.task(2); a.delay < 800 || b.delay < 800 {
		t.Errorf("retried in %d and %d ms", a.delay, b.delay)
	}
}

// Asking about a type delays only failures of that type.
func TestWorker_typesThatHang(t *testing.T) {
	t.Parallel()
	types := strings.Split("a b c d e f g h", " ")
	o := newOffice()
	for _, of := range types {
		o.add(wire.Task{TaskType: of})
	}
	o.fault = func(r request, before bool) reply {
		if before && strings.HasPrefix(r.path, typesPath) {
			return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: len(types)}, func(w *Worker) {
		for _, of := range types {
			Handle(w, of, func(context.Context, *Job[mail]) error { return errors.New("no") })
		}
	}, func(t *testing.T, r *running) {
		<-time.After(backoffsTimeout + 100*time.Millisecond)
		if got := len(o.sent("/fail")); got != len(types) {
			t.Errorf("%d of %d fails are sent", got, len(types))
		}
	})
}

func TestDefaultRetry(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]time.Duration{-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute, 1 << 40: 10 * time.Minute} {
		least, most := 10*want, time.Duration(0)
		for range 1000 {
			d := defaultRetry(&Task{Attempts: attempt}, nil)
			least, most = min(least, d), max(most, d)
		}
		if least < want*4/5 || most > want*6/5+1 || least > want*85/100 || most < want*115/100 {
			t.Errorf("attempt %d: %v to %v, want %v ± 20 %%", attempt, least, most, want)
		}
	}
}
