package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"sync"

	"github.com/claimq/claimq/client"
)

// sender sends mails. Concurrent calls are safe.
type sender struct {
	book   book
	server string // host:port

	mu  sync.Mutex // guards out
	out io.Writer
}

func (s *sender) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%d: "+format+"\n", append([]any{os.Getpid()}, args...)...)
}

// handle sends the mail of a task.
func (s *sender) handle(ctx context.Context, job *client.Job[params]) error {
	if err := job.Params.check(); err != nil {
		return client.Permanent(err)
	}
	key, order := job.Params.key(), job.Params.Order
	before, err := s.book.begin(key, job.Token)
	switch {
	case err != nil:
		s.say("order %s, token %d: nothing is sent: %v", order, job.Token, err)
		return err
	case before.State == stateSent:
		s.say("order %s, token %d: it was sent under token %d", order, job.Token, before.Fence)
		return nil
	case before.State == stateSending:
		s.say("order %s, token %d: somebody with token %d may have sent it, too", order, job.Token, before.Fence)
	}
	if ctx.Err() != nil { // the claim may have ended meanwhile
		return context.Cause(ctx)
	}
	if err := send(ctx, s.server, confirmation(job.Params)); err != nil {
		return whetherToRepeat(err)
	}
	// The mail was sent, so this is written even if the claim is lost. The database decides whether it accepts the
	// write, because this process may have been stopped since.
	if err := s.book.finish(key, job.Token); err != nil {
		s.say("order %s, token %d: sent, but %v", order, job.Token, err)
		return err
	}
	s.say("order %s, token %d: sent to %s", order, job.Token, job.Params.To)
	return nil
}

// whetherToRepeat fails the task for good if the mail server will never take this mail.
func whetherToRepeat(err error) error {
	if refusal := (*textproto.Error)(nil); errors.As(err, &refusal) && refusal.Code >= 500 {
		return client.Permanent(err)
	}
	return err
}
