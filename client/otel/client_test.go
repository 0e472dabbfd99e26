package claimqotel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	claimqotel "github.com/claimq/claimq/client/otel"
)

// recorded returns a provider and the recorder of its spans.
func recorded() (*sdk.TracerProvider, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)), recorder
}

// byName returns the span with the name, or nil.
func byName(recorder *tracetest.SpanRecorder, name string) sdk.ReadOnlySpan {
	for _, span := range recorder.Ended() {
		if span.Name() == name {
			return span
		}
	}
	return nil
}

func attributes(span sdk.ReadOnlySpan) map[attribute.Key]string {
	all := map[attribute.Key]string{}
	for _, a := range span.Attributes() {
		all[a.Key] = a.Value.String()
	}
	return all
}

// work runs a worker with the middleware until the tasks have the status.
func work(t *testing.T, s *clienttest.Server, provider trace.TracerProvider, handle func(context.Context, *client.Job[string]) error, status client.TaskStatus, ids ...string) {
	t.Helper()
	w, err := client.NewWorker(s.Client(), client.WorkerConfig{ID: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	w.Use(claimqotel.Middleware(provider))
	client.Handle(w, "mail", handle)
	ctx, span := provider.Tracer("test").Start(t.Context(), "run") // attempts are not part of it
	defer span.End()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	for _, id := range ids {
		s.Await(id, status)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An attempt begins a new trace that is linked to the submit, and tasks that its handler submits are linked to the
// attempt.
func TestTrace_fromSubmitToWork(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	provider, recorder := recorded()
	c := claimqotel.Wrap(s.Client(), provider)
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	id, err := c.Submit(ctx, client.Task{TaskType: "mail", Payload: []byte(`"ada"`)})
	if err != nil {
		t.Fatal(err)
	}
	request.End()
	work(t, s, provider, func(ctx context.Context, job *client.Job[string]) error {
		_, err := s.Client().Submit(ctx, client.Task{TaskType: "later", Payload: job.Task.Payload})
		return err
	}, client.StatusCompleted, id)

	submit, process := byName(recorder, "submit mail"), byName(recorder, "process mail")
	if submit == nil || process == nil {
		t.Fatalf("the spans are %v", recorder.Ended())
	}
	if submit.Parent().SpanID() != request.SpanContext().SpanID() || submit.SpanKind() != trace.SpanKindProducer {
		t.Errorf("the submit is a %v of %v", submit.SpanKind(), submit.Parent())
	}
	if got := attributes(submit); got["messaging.message.id"] != id || got["messaging.destination.name"] != "mail" || got["claimq.created"] != "true" {
		t.Errorf("the submit has %v", got)
	}
	links := process.Links()
	if len(links) != 1 || links[0].SpanContext.SpanID() != submit.SpanContext().SpanID() || links[0].SpanContext.TraceID() != submit.SpanContext().TraceID() {
		t.Errorf("the attempt is linked to %v", links)
	}
	if process.Parent().IsValid() || process.SpanContext().TraceID() == submit.SpanContext().TraceID() || process.SpanKind() != trace.SpanKindConsumer || process.Status().Code != codes.Unset {
		t.Errorf("the attempt is a %v of %v, %v", process.SpanKind(), process.Parent(), process.Status())
	}
	if got := attributes(process); got["messaging.message.id"] != id || got["claimq.attempt"] != "1" || got["claimq.claim_token"] == "" || got["messaging.system"] != "claimq" {
		t.Errorf("the attempt has %v", got)
	}
	later := s.Tasks("later")
	want := fmt.Sprintf("00-%s-%s-01", process.SpanContext().TraceID(), process.SpanContext().SpanID())
	if len(later) != 1 || later[0].Traceparent != want {
		t.Errorf("what the handler submitted carries %q, want %q", later[0].Traceparent, want)
	}
}

func TestTrace_errors(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	provider, recorder := recorded()
	c := claimqotel.Wrap(s.Client(), provider)
	if _, err := c.SubmitTask(t.Context(), client.Task{}); !errors.Is(err, client.ErrInvalidTask) {
		t.Errorf("an empty task: %v", err)
	}
	if span := byName(recorder, "submit default"); span == nil || span.Status().Code != codes.Error || len(span.Events()) != 1 {
		t.Errorf("the span of a refused submit is %v", span)
	}
	// A task that was submitted without a trace.
	id, err := s.Client().Submit(t.Context(), client.Task{TaskType: "mail", Payload: []byte(`"ada"`)})
	if err != nil {
		t.Fatal(err)
	}
	work(t, s, provider, func(context.Context, *client.Job[string]) error {
		return client.Permanent(errors.New("no such address"))
	}, client.StatusFailed, id)
	if span := byName(recorder, "process mail"); span == nil || span.Status().Description != "no such address" || len(span.Links()) != 0 {
		t.Errorf("the span of a failed attempt is %v", span)
	}
}

// A snoozed task is not an error.
func TestTrace_snooze(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	provider, recorder := recorded()
	id, err := s.Client().Submit(t.Context(), client.Task{TaskType: "mail", Payload: []byte(`"ada"`)})
	if err != nil {
		t.Fatal(err)
	}
	work(t, s, provider, func(context.Context, *client.Job[string]) error {
		return fmt.Errorf("not yet: %w", client.Snooze(time.Minute))
	}, client.StatusScheduled, id)
	span := byName(recorder, "process mail")
	if span == nil || span.Status().Code != codes.Unset || len(span.Events()) != 0 || attributes(span)["claimq.snoozed_ms"] != "60000" {
		t.Errorf("the span of a snoozed attempt is %v", span)
	}
}

func TestTrace_many(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	provider, recorder := recorded()
	_, err := claimqotel.Wrap(s.Client(), provider).SubmitMany(t.Context(), []client.Task{{Payload: []byte("1")}, {Payload: []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	span := byName(recorder, "submit many")
	if span == nil || attributes(span)["messaging.batch.message_count"] != "2" {
		t.Fatalf("the span is %v", span)
	}
	for _, task := range s.Tasks("default") {
		if want := fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID()); task.Traceparent != want {
			t.Errorf("task %s carries %q, want %q", task.ID, task.Traceparent, want)
		}
	}
	if ctx := claimqotel.Inject(t.Context()); ctx != t.Context() {
		t.Error("a context without a span is another")
	}
}
