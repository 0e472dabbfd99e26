package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// badError panics in one of its methods.
type badError struct{ in string }

func (e *badError) Error() string {
	if e.in == "Error" { // as a nil pointer does
		panic("in Error")
	}
	return "the disk is full"
}

func (e *badError) Is(error) bool {
	if e.in == "Is" {
		panic("in Is")
	}
	return false
}

func (e *badError) As(any) bool {
	if e.in == "As" {
		panic("in As")
	}
	return false
}

func (e *badError) Unwrap() error {
	if e.in == "Unwrap" {
		panic("in Unwrap")
	}
	return nil
}

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }

// Whatever a handler returns, and whatever panics in its error, the attempt fails once and its reason is kept.
func TestWorker_outlivesWhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	var none *badError
	const day = 24 * time.Hour
	type job = Job[mail]
	tests := map[string]struct {
		handler    func(*job) error
		middleware Middleware
		retry      func(*Task, error) time.Duration
		status     string // "": failed
		errors     []string
		delay      int64 // ms; 0: any
		permanent  bool
	}{
		"a nil pointer":         {handler: func(*job) error { return none }, errors: []string{"a nil pointer of type *client.badError"}},
		"Error panics":          {handler: func(*job) error { return &badError{"Error"} }, errors: []string{"*client.badError", "in Error"}},
		"Is panics":             {handler: func(*job) error { return &badError{"Is"} }, errors: []string{"the disk is full"}},
		"As panics":             {handler: func(*job) error { return &badError{"As"} }, errors: []string{"the disk is full"}},
		"Unwrap panics":         {handler: func(*job) error { return &badError{"Unwrap"} }, errors: []string{"the disk is full"}},
		"wrapped":               {handler: func(*job) error { return fmt.Errorf("save: %w", &badError{"Unwrap"}) }, errors: []string{"save: the disk is full"}},
		"panic with one":        {handler: func(*job) error { panic(&badError{"Unwrap"}) }, errors: []string{"panic: the disk is full", "goroutine"}},
		"panic with a nil one":  {handler: func(*job) error { panic(none) }, errors: []string{"panic: ", "goroutine"}},
		"permanent":             {handler: func(*job) error { return Permanent(none) }, errors: []string{"a nil pointer of type *client.badError"}, permanent: true},
		"retry after":           {handler: func(*job) error { return RetryAfter(time.Hour, &badError{"Is"}) }, errors: []string{"the disk is full"}, delay: 3_600_000},
		"retry after too long":  {handler: func(*job) error { return RetryAfter(366*day, errors.New("no licence")) }, errors: []string{"no licence"}, delay: (365 * day).Milliseconds()},
		"snooze for too long":   {handler: func(*job) error { return Snooze(1<<63 - 1) }, status: "released", delay: (365 * day).Milliseconds()},
		"Retry panics":          {handler: func(*job) error { return errors.New("boom") }, retry: func(*Task, error) time.Duration { panic("in Retry") }, errors: []string{"boom"}},
		"Retry is above all":    {handler: func(*job) error { return errors.New("boom") }, retry: func(*Task, error) time.Duration { return 1<<63 - 1 }, errors: []string{"boom"}, delay: (365 * day).Milliseconds()},
		"JSON of a result":      {handler: func(j *job) error { j.SetResult(badJSON{}); return nil }, errors: []string{"panic: in MarshalJSON"}},
		"JSON of a progress":    {handler: func(j *job) error { return j.Progress(context.Background(), badJSON{}) }, errors: []string{"panic: in MarshalJSON"}},
		"a text of any length":  {handler: func(*job) error { return errors.New("long" + strings.Repeat("é", 1<<20)) }, errors: []string{"longéé"}},
		"a middleware before":   {handler: func(*job) error { return nil }, middleware: func(context.Context, *Job[[]byte], func(context.Context) error) error { panic("in middleware") }, errors: []string{"panic: in middleware"}},
		"a middleware after it": {handler: func(*job) error { return errors.New("the disk is full") }, middleware: panicsAfter, errors: []string{"the disk is full", "panic: in middleware"}},
		"after a permanent one": {handler: func(*job) error { return Permanent(errors.New("no address")) }, middleware: panicsAfter, errors: []string{"no address", "panic: in middleware"}, permanent: true},
		"after a panic":         {handler: func(*job) error { panic("first") }, middleware: panicsAfter, errors: []string{"panic: first", "panic: in middleware"}},
		"a middleware's error":  {handler: func(*job) error { return nil }, middleware: func(context.Context, *Job[[]byte], func(context.Context) error) error { return none }, errors: []string{"a nil pointer of type *client.badError"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{MaxAttempts: 3}, wire.Task{TaskType: "next"})
			told := func(context.Context, *Task, error) { panic("in OnError") }
			runWorker(t, o, WorkerConfig{Retry: test.retry, OnError: told}, func(w *Worker) {
				if test.middleware != nil {
					w.Use(func(ctx context.Context, j *Job[[]byte], next func(context.Context) error) error {
						if j.Task.TaskType == "next" {
							return next(ctx)
						}
						return test.middleware(ctx, j, next)
					})
				}
				Handle(w, "mail", func(_ context.Context, j *Job[mail]) error { return test.handler(j) })
				Handle(w, "next", func(context.Context, *Job[mail]) error { return nil })
			}, func(*testing.T, *running) {})
			got := o.task(1)
			if want := test.status; want == "" && got.Status != "failed" || want != "" && got.Status != want {
				t.Errorf("the task is %s: %s", got.Status, got.Error)
			}
			for _, want := range test.errors {
				if !strings.Contains(got.Error, want) {
					t.Errorf("the error is %q, want %q in it", got.Error, want)
				}
			}
			if len(got.Error) > errorBytesMax || got.permanent != test.permanent || test.delay != 0 && got.delay != test.delay {
				t.Errorf("error of %d bytes, permanent %v, delay %d", len(got.Error), got.permanent, got.delay)
			}
			if got := o.task(2); got.Status != "completed" {
				t.Errorf("the next task is %s", got.Status)
			}
		})
	}
}

func panicsAfter(ctx context.Context, _ *Job[[]byte], next func(context.Context) error) error {
	_ = next(ctx)
	panic("in middleware")
}

// safeError returns a harmless error unchanged.
func TestSafeError(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("x"), Permanent(context.Canceled), errors.Join(ErrStaleClaim, Snooze(1))} {
		if got := safeError(err); got != err { //nolint:errorlint // the very value
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// If a progress is too long, its beginning is kept.
func TestCutProgress(t *testing.T) {
	t.Parallel()
	quotes, _ := json.Marshal(strings.Repeat(`"é`, 4000))
	for _, raw := range []string{`{"at":1}`, `{"log":"` + strings.Repeat("x", 8000) + `"}`, string(quotes), `"` + strings.Repeat(`\u0001`, 4000) + `"`} {
		got := cutProgress(json.RawMessage(raw))
		if len(raw) <= progressBytesMax {
			if string(got) != raw {
				t.Errorf("%s becomes %s", raw, got)
			}
			continue
		}
		var text string
		if err := json.Unmarshal(got, &text); err != nil || len(got) > progressBytesMax || len(got) < progressBytesMax-16 || !strings.HasSuffix(text, "…") {
			t.Errorf("%.20s of %d bytes becomes %d bytes, %v: %.20s", raw, len(raw), len(got), err, got)
		}
		before := raw
		if of := ""; json.Unmarshal([]byte(raw), &of) == nil {
			before = of
		}
		if !strings.HasPrefix(before, strings.TrimSuffix(text, "…")) {
			t.Errorf("%.20s becomes %.20s", raw, text)
		}
	}
}
