package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

func TestWorker_Use(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{Traceparent: "00-trace"}, wire.Task{Attempts: 1}, wire.Task{Attempts: 2})
	var heard []string
	runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
		say := func(name string) Middleware {
			return func(ctx context.Context, job *Job[[]byte], next func(context.Context) error) error {
				heard = append(heard, name+" "+string(job.Params))
				err := next(context.WithValue(ctx, mail{}, name))
				heard = append(heard, fmt.Sprintf("%s %v", name, err != nil))
				if p := (*PanicError)(nil); errors.As(err, &p) {
					return Permanent(fmt.Errorf("seen: %v", p.Value))
				}
				job.SetResult(name)
				return err
			}
		}
		w.Use(say("outer"))
		w.Use(say("inner"), func(ctx context.Context, job *Job[[]byte], next func(context.Context) error) error {
			if job.Attempt == 3 {
				panic("in a middleware")
			}
			return next(ctx)
		})
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
			heard = append(heard, fmt.Sprintf("handler in %v %v", ctx.Value(mail{}), ctx.Value(traceparentKey{})))
			if job.Attempt == 2 {
				panic("argh")
			}
			job.SetResult("handler")
			return nil
		})
	}, func(*testing.T, *running) {})
	want := `outer {"to":"ada"}, inner {"to":"ada"}, handler in inner 00-trace, inner false, outer false`
	if got := strings.Join(heard[:5], ", "); got != want {
		t.Errorf("heard %s\nwant  %s", got, want)
	}
	if a, b, c := o.task(1), o.task(2), o.task(3); string(a.Result) != `"outer"` || b.Error != "seen: argh" || c.Error != "seen: in a middleware" {
		t.Errorf("%s, %s, %s", a.Result, b.Error, c.Error)
	}
}

func TestHandle_mistakes(t *testing.T) {
	t.Parallel()
	o := newOffice()
	c := o.client(t)
	defer c.Close()
	handle := func(context.Context, *Job[mail]) error { return nil }
	tests := map[string]struct {
		set  func(*Worker)
		want string
	}{
		"no handlers": {func(*Worker) {}, "no handlers"},
		"a bad type":  {func(w *Worker) { Handle(w, "a b", handle) }, `type "a b": a type is a string of 1 to 128`},
		"twice":       {func(w *Worker) { Handle(w, "", handle); Handle(w, "default", handle) }, `type "default": there is one already`},
		"options":     {func(w *Worker) { Handle(w, "a", handle, WithConcurrency(0), WithTimeout(-1)) }, "timeout is -1ns"},
	}
	for name, test := range tests {
		w, err := NewWorker(c, WorkerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		test.set(w)
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A worker runs only once, and then its handlers are final.
func TestWorker_Run_once(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, *Job[mail]) error { return nil }
	runWorker(t, newOffice(), WorkerConfig{}, func(w *Worker) { Handle(w, "mail", handle) }, func(t *testing.T, r *running) {
		if err := r.Run(t.Context()); err == nil {
			t.Error("it runs twice")
		}
		for name, late := range map[string]func(){"Handle": func() { Handle(r.Worker, "other", handle) }, "Use": func() { r.Use() }} {
			if err := guard(func() error { late(); return nil }); err == nil {
				t.Errorf("%s after Run", name)
			}
		}
	})
}

func TestNewWorker(t *testing.T) {
	t.Parallel()
	c := newOffice().client(t)
	defer c.Close()
	for name, cfg := range map[string]WorkerConfig{
		"id": {ID: "a b"}, "long id": {ID: strings.Repeat("a", 129)}, "concurrency": {Concurrency: -1}, "much concurrency": {Concurrency: 10_001},
		"lease": {Lease: time.Millisecond}, "long lease": {Lease: 25 * time.Hour}, "timeout": {Timeout: -1}, "stop wait": {StopWait: -2},
	} {
		if _, err := NewWorker(c, cfg); err == nil || strings.Contains(name, "id") != errors.Is(err, ErrInvalidWorkerID) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewWorker(nil, WorkerConfig{}); err == nil {
		t.Error("without a client")
	}
	a, err := NewWorker(c, WorkerConfig{})
	b, err2 := NewWorker(c, WorkerConfig{})
	if err != nil || err2 != nil || a.ID() == b.ID() {
		t.Errorf("ids %s, %s: %v, %v", a.ID(), b.ID(), err, err2)
	}
	for host, want := range map[string]string{"web-1.example.org": "web-1.example.org-7-", "": "worker-7-", strings.Repeat("é", 100): strings.Repeat("-", 115) + "-7-"} {
		if id := madeUpID(host, 7); !strings.HasPrefix(id, want) || !wire.ValidWorkerID(id) {
			t.Errorf("host %q: id %q", host, id)
		}
	}
}
