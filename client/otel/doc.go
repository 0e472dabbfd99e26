// Package claimqotel traces tasks with OpenTelemetry, from the submit to the work. It is a
// module of its own, so that package client needs nothing but the standard library.
//
// A producer wraps its client, and a worker uses the middleware:
//
//	c := claimqotel.Wrap(plain, nil) // the global tracer provider
//	id, err := c.Submit(ctx, task)
//
//	w.Use(claimqotel.Middleware(nil))
//
// A submit is a span of its own, and its W3C trace context is kept with the task. Each attempt
// is a span with a link to it: a task may wait for days and be tried again, so an attempt is not
// a part of the request that submitted the task, but a trace of its own. What the handler
// submits carries the attempt's span in turn; tasks of Job.Then carry what the task itself
// did.
//
// Attributes follow the conventions for messaging: messaging.system is claimq,
// messaging.destination.name the task type, messaging.message.id the task's id; claimq.attempt and
// claimq.claim_token say which attempt it was.
package claimqotel
