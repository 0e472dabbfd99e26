package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// retryNoticeAfter limits how long a command is silent while no node answers.
const retryNoticeAfter = 2 * time.Second

// retryNotice is a client's log that shows only one thing: that a call is repeated, once the command has been silent for
// retryNoticeAfter.
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
