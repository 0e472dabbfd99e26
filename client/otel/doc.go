// Package claimqotel traces tasks with OpenTelemetry, from the submit to the work. It is a separate module, so that
// package client does not depend on OpenTelemetry.
//
// A producer wraps its client, and a worker uses the middleware:
//
//	c := claimqotel.Wrap(plain, nil) // the global tracer provider
//	id, err := c.Submit(ctx, task)
//
//	w.Use(claimqotel.Middleware(nil))
//
// A submit is a span, and its W3C trace context is kept with the task. Each attempt begins a new trace with a link to
// that span, rather than a child of it, because a task may wait for days and be tried again. Tasks that the handler
// submits carry the attempt's span; tasks of Job.Then carry the trace context of the task itself.
//
// Attributes follow the conventions for messaging: messaging.system is claimq, messaging.destination.name the task
// type, and messaging.message.id the task's id. claimq.attempt and claimq.claim_token identify the attempt.
package claimqotel
