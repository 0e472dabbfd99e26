package client

import "context"

type traceparentKey struct{}

// WithTraceparent returns a context whose calls carry traceparent, a W3C trace
// context (https://www.w3.org/TR/trace-context/). The tasks that they submit keep
// it, as Task.Traceparent: so what traces the work can go on where its producer
// was. The server ignores one that is malformed.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}
