package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Backoff sets how long a task waits after an attempt that failed or expired: Initial after the first, then Factor
// times as long after each further one, up to Max. Jitter shortens each wait by up to that share, derived from a hash
// of task and attempt.
type Backoff struct {
	Initial time.Duration // required, 1 ms to 365 days; 0 only in NoBackoff
	Max     time.Duration // 0: 1 h, or Initial if that is longer
	Factor  float64       // 1 to 1,000, six decimals. 0: 2
	Jitter  float64       // up to 1, six decimals. 0: 0.2; NoJitter: none
}

// NoJitter in Backoff.Jitter makes all waits of a kind equally long.
const NoJitter = -1

// NoBackoff makes a task claimable again at once, whatever its type and the server's defaults say.
var NoBackoff = Backoff{Factor: 1}

func (b *Backoff) check() error {
	switch {
	case b == nil:
		return nil
	case b.Initial == 0 && b.Factor == 0:
		return errors.New("the backoff has no Initial: NoBackoff lets the task be claimed again at once")
	case b.Initial < 0 || b.Max < 0:
		return fmt.Errorf("backoff waits from %v to %v", b.Initial, b.Max)
	case !(b.Factor >= 0 && b.Factor <= math.MaxInt32 && (b.Jitter >= 0 || b.Jitter == NoJitter) && b.Jitter <= math.MaxInt32): // NaN is refused, too
		return fmt.Errorf("backoff has factor %v and jitter %v", b.Factor, b.Jitter)
	}
	return nil
}

// wire returns the backoff for a request, rounded to the six decimals that the server keeps.
func (b *Backoff) wire() *wire.Backoff {
	if b == nil {
		return nil
	}
	six := func(f float64) float64 { return math.Round(f*1e6) / 1e6 }
	w := &wire.Backoff{InitialMS: milliseconds(b.Initial), MaxMS: milliseconds(b.Max), Factor: six(b.Factor)}
	if b.Jitter != 0 {
		jitter := six(max(b.Jitter, 0))
		w.Jitter = &jitter
	}
	return w
}

func backoffFromWire(w *wire.Backoff) *Backoff {
	if w == nil {
		return nil
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	b := &Backoff{Initial: ms(w.InitialMS), Max: ms(w.MaxMS), Factor: w.Factor}
	if w.Jitter != nil {
		b.Jitter = cmp.Or(*w.Jitter, NoJitter)
	}
	return b
}

const (
	// Bounds of the default of WorkerConfig.Retry, before the 20 % of jitter.
	retryMin = time.Second
	retryMax = 10 * time.Minute
	// backoffsAge limits how long a worker trusts what it knows of a type's backoff, or that asking for it failed.
	backoffsAge = time.Minute
	// backoffsTimeout bounds asking for it, because a failed attempt waits meanwhile to be settled.
	backoffsTimeout = 3 * time.Second
)

// defaultRetry is the default of WorkerConfig.Retry.
func defaultRetry(task *Task, _ error) time.Duration {
	d := retryMax
	if shift := task.Attempts - 1; shift < 10 {
		d = min(retryMin<<max(shift, 0), retryMax)
	}
	return d*4/5 + rand.N(d*2/5+1)
}

// typeBackoffs caches which types have a backoff, directly or by the server's defaults, because a claimed task
// does not tell. It is safe for concurrent use.
type typeBackoffs struct {
	c *Client
	// server says that the server's default counts, too. It does not if WorkerConfig.Retry is set.
	server bool

	mu    sync.Mutex // guards the map
	known map[string]*typeBackoff
}

// typeBackoff is the cached answer for one type.
type typeBackoff struct {
	mu      sync.Mutex // held while asking, so that only attempts of this type wait for the answer
	askedAt time.Time
	value   bool
}

func (b *typeBackoffs) of(taskType string) *typeBackoff {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.known[taskType]
	if of == nil {
		of = &typeBackoff{}
		b.known[taskType] = of
	}
	return of
}

// has reports whether tasks of the type have a backoff, as of a minute ago at most. If the server does not answer,
// the last known answer holds, at first false: a wait chosen by the worker is better than none.
func (b *typeBackoffs) has(ctx context.Context, taskType string) bool {
	of := b.of(taskType)
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.askedAt.IsZero() || time.Since(of.askedAt) >= backoffsAge {
		is, err := b.ask(ctx, taskType)
		if err != nil {
			is = of.value
			b.c.logger.DebugContext(ctx, "claimq: the type's backoff is not known", "task_type", taskType, "err", err)
		}
		of.askedAt, of.value = time.Now(), is
	}
	return of.value
}

func (b *typeBackoffs) ask(ctx context.Context, taskType string) (is bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, backoffsTimeout)
	defer cancel()
	t, err := b.c.Type(ctx, taskType)
	if err != nil || t.Settings.Backoff != nil || !b.server {
		return err == nil && t.Settings.Backoff != nil, err
	}
	defaults, err := b.c.Defaults(ctx)
	return err == nil && defaults.Backoff != nil, err
}
