package claimqotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/claimq/claimq/client"
)

const (
	scope = "github.com/claimq/claimq/client/otel"

	keySystem    = attribute.Key("messaging.system")
	keyOperation = attribute.Key("messaging.operation.type")
	keyType      = attribute.Key("messaging.destination.name")
	keyTask      = attribute.Key("messaging.message.id")
	keyCount     = attribute.Key("messaging.batch.message_count")
	keyAttempt   = attribute.Key("claimq.attempt")
	keyToken     = attribute.Key("claimq.claim_token")
	keyCreated   = attribute.Key("claimq.created")
	keySnoozed   = attribute.Key("claimq.snoozed_ms")
)

// headerName is the header of the trace context.
const headerName = "traceparent"

// Client is a client whose submits are traced. Other methods are passed to the wrapped client.
type Client struct {
	*client.Client
	tracer trace.Tracer
}

// Wrap returns c with traced submits. If provider is nil, the global one is used.
func Wrap(c *client.Client, provider trace.TracerProvider) *Client {
	return &Client{Client: c, tracer: tracerOf(provider)}
}

func tracerOf(provider trace.TracerProvider) trace.Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(scope)
}

// Inject returns a context whose calls, of any client, carry the trace context of ctx's span. Submits of a Client do
// this themselves; use Inject for other calls, such as those of package outbox.
func Inject(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if carrier[headerName] == "" {
		return ctx
	}
	return client.WithTraceparent(ctx, carrier[headerName])
}

// Submit is client.Client.Submit in a span.
func (c *Client) Submit(ctx context.Context, task client.Task) (string, error) {
	s, err := c.SubmitTask(ctx, task)
	return s.ID, err
}

// SubmitTask is client.Client.SubmitTask in a span.
func (c *Client) SubmitTask(ctx context.Context, task client.Task) (client.Submitted, error) {
	ctx, span := c.begin(ctx, "submit "+typeOf(&task), keyType.String(typeOf(&task)))
	defer span.End()
	s, err := c.Client.SubmitTask(Inject(ctx), task)
	if err == nil {
		span.SetAttributes(keyTask.String(s.ID), keyCreated.Bool(s.Created))
	}
	return s, told(span, err)
}

// SubmitMany is client.Client.SubmitMany in one span for all tasks.
func (c *Client) SubmitMany(ctx context.Context, tasks []client.Task) ([]client.Submitted, error) {
	ctx, span := c.begin(ctx, "submit many", keyCount.Int(len(tasks)))
	defer span.End()
	results, err := c.Client.SubmitMany(Inject(ctx), tasks)
	return results, told(span, err)
}

func (c *Client) begin(ctx context.Context, name string, of attribute.KeyValue) (context.Context, trace.Span) {
	return c.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(keySystem.String("claimq"), keyOperation.String("send"), of))
}

// typeOf returns the task's type as the server stores it.
func typeOf(t *client.Task) string {
	if t.TaskType == "" {
		return "default"
	}
	return t.TaskType
}

// told records an error in the span, and returns it.
func told(span trace.Span, err error) error {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

// Middleware makes each attempt of a worker a span that is linked to the submit's. It records the handler's error,
// except a Snooze, which sets the attribute claimq.snoozed_ms instead. If provider is nil, the global one is used.
func Middleware(provider trace.TracerProvider) client.Middleware {
	tracer := tracerOf(provider)
	return func(ctx context.Context, job *client.Job[[]byte], next func(context.Context) error) error {
		options := []trace.SpanStartOption{
			trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(keySystem.String("claimq"), keyOperation.String("process"), keyType.String(job.Task.TaskType),
				keyTask.String(job.Task.ID), keyAttempt.Int(job.Attempt), keyToken.Int64(job.Token)),
		}
		submit := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{headerName: job.Task.Traceparent})
		if of := trace.SpanContextFromContext(submit); of.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: of}))
		}
		ctx, span := tracer.Start(ctx, "process "+job.Task.TaskType, options...)
		defer span.End()
		err := next(Inject(ctx))
		if delay, snoozed := client.Snoozed(err); snoozed {
			span.SetAttributes(keySnoozed.Int64(delay.Milliseconds()))
			return err
		}
		return told(span, err)
	}
}
