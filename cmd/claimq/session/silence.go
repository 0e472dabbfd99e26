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

// silenceMax limits how long a command is silent while no node answers.
const silenceMax = 2 * time.Second

// silence is a client's log that shows only one thing: that a call is repeated, once the command has been silent for
// silenceMax.
type silence struct {
	a       *term.App
	begun   time.Time
	timeout time.Duration
	told    sync.Once
}

// newSilence returns the logger of a client with that timeout; nil if no user would see it.
func newSilence(a *term.App, timeout time.Duration) *slog.Logger {
	if !a.Attended {
		return nil
	}
	return slog.New(&silence{a: a, begun: time.Now(), timeout: timeout})
}

// Enabled implements slog.Handler.
func (s *silence) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (s *silence) Handle(_ context.Context, r slog.Record) error {
	if r.Message != client.LogRepeating || r.Time.Sub(s.begun) < silenceMax {
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
func (s *silence) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup implements slog.Handler.
func (s *silence) WithGroup(string) slog.Handler { return s }
