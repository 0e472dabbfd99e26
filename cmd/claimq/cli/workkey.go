package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/claimq/claimq/client"
)

// keyWatch is the worker's log, and ends the worker once its key is refused: asking
// on would not help, and nobody may read the log. It is safe for concurrent use.
type keyWatch struct {
	slog.Handler
	refusal *keyRefusal
}

// keyRefusal is what a keyWatch found, shared by all handlers that are made of it.
type keyRefusal struct {
	end context.CancelFunc // called at the first refusal

	mu  sync.Mutex
	err error // the first refusal; guarded by mu
}

// Handle is of slog.Handler. Refusals of the key are kept and not written.
func (k keyWatch) Handle(ctx context.Context, record slog.Record) error {
	refused := false
	record.Attrs(func(attr slog.Attr) bool {
		err, ok := attr.Value.Any().(error)
		if ok && (errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrForbidden)) {
			k.refusal.keep(err)
			refused = true
		}
		return !refused
	})
	if refused {
		return nil
	}
	return k.Handler.Handle(ctx, record)
}

// WithAttrs is of slog.Handler.
func (k keyWatch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return keyWatch{k.Handler.WithAttrs(attrs), k.refusal}
}

// WithGroup is of slog.Handler.
func (k keyWatch) WithGroup(name string) slog.Handler {
	return keyWatch{k.Handler.WithGroup(name), k.refusal}
}

func (r *keyRefusal) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
		r.end()
	}
}

// error returns the refusal that ended the worker, nil if there was none.
func (r *keyRefusal) error() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
