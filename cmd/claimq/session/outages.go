package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// silenceMax limits how long a command that runs until it is stopped is silent while no node answers. docs/workers.md
	// promises 5 s, which include the start of the process.
	silenceMax = 4 * time.Second
	// outageRest is the pause after an answer, which bounds what Outages adds to the load of a cluster in trouble.
	outageRest = 5 * time.Second
)

// Outages tells the user of a command that runs until it is stopped that no node answers, and that one answers again.
// It is the log of the command's client, and so knows when calls are repeated.
type Outages struct {
	repeated chan struct{} // receives a value when a call is repeated
}

// NewOutages returns Outages that tell nothing before Watch.
func NewOutages() *Outages { return &Outages{make(chan struct{}, 1)} }

// Watch asks the cluster at once, and again when calls of c are repeated, until end is called.
func (o *Outages) Watch(ctx context.Context, c *client.Client, tell func(text string)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for look(ctx, c, tell) && pause.For(ctx, outageRest) {
			select {
			case <-o.repeated:
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// look asks the cluster until a node answers. It reports false if ctx ended first.
func look(ctx context.Context, c *client.Client, tell func(text string)) bool {
	for told := false; ; told = true {
		asking, end := context.WithTimeout(ctx, silenceMax)
		_, err := c.Defaults(asking)
		answered := Answered(err)
		if !answered && !told && ctx.Err() == nil {
			tell(fmt.Sprintf("the cluster does not answer, and is asked again (is it up, and is --endpoint or CLAIMQ_ENDPOINTS right?): %v", err))
		}
		if !answered {
			<-asking.Done() // the error may have come at once
		}
		end()
		switch {
		case ctx.Err() != nil:
			return false
		case answered && told:
			tell("the cluster answers")
			return true
		case answered:
			return true
		}
	}
}

// Answered reports whether a call with that error was answered by a node that could do it, or that refused it for
// good.
func Answered(err error) bool {
	var refusal *client.Error
	return err == nil || errors.As(err, &refusal) && refusal.Code != "" &&
		refusal.Status < http.StatusInternalServerError && refusal.Status != http.StatusTooManyRequests
}

// Enabled implements slog.Handler.
func (o *Outages) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (o *Outages) Handle(_ context.Context, r slog.Record) error {
	if r.Message == client.LogRepeating {
		select {
		case o.repeated <- struct{}{}:
		default:
		}
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (o *Outages) WithAttrs([]slog.Attr) slog.Handler { return o }

// WithGroup implements slog.Handler.
func (o *Outages) WithGroup(string) slog.Handler { return o }

// retryNoticeAfter limits how long a command is silent while no node answers.
const retryNoticeAfter = 2 * time.Second

// retryNotice is a client's log that shows only one thing: that a call is repeated, once the command has been silent
// for retryNoticeAfter.
type retryNotice struct {
	a       *term.App
	begun   time.Time
	timeout time.Duration
	told    sync.Once
}

// newRetryNotice returns the logger of a client with that timeout; nil if no user would see it.
func newRetryNotice(a *term.App, timeout time.Duration) *slog.Logger {
	if !a.Interactive {
		return nil
	}
	return slog.New(&retryNotice{a: a, begun: time.Now(), timeout: timeout})
}

// Enabled implements slog.Handler.
func (s *retryNotice) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (s *retryNotice) Handle(_ context.Context, r slog.Record) error {
	if r.Message != client.LogRepeating || r.Time.Sub(s.begun) < retryNoticeAfter {
		return nil
	}
	s.told.Do(func() {
		var why any
		r.Attrs(func(attr slog.Attr) bool {
			if attr.Key == "err" {
				why = attr.Value
			}
			return true
		})
		fmt.Fprintf(s.a.Stderr, "claimq: no answer yet: %v; trying until %s (--timeout %s)\n", why, s.begun.Add(s.timeout).Format(time.TimeOnly), s.timeout)
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (s *retryNotice) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup implements slog.Handler.
func (s *retryNotice) WithGroup(string) slog.Handler { return s }
