package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// Bounds of the Worker's own backoff, before the 20 % that it gives or takes.
	retryMin = time.Second
	retryMax = 10 * time.Minute
	// backoffsAge is for how long a worker goes by what it knows of the types'
	// backoffs, also when it could not be told.
	backoffsAge = time.Minute
	// backoffsTimeout bounds asking for them: an attempt has failed, and waits to be
	// settled.
	backoffsTimeout = 3 * time.Second
)

// defaultRetry is WorkerConfig.Retry where there is none.
func defaultRetry(task *Task, _ error) time.Duration {
	d := retryMax
	if shift := task.Attempts - 1; shift < 10 {
		d = min(retryMin<<max(shift, 0), retryMax)
	}
	return d*4/5 + rand.N(d*2/5+1)
}

// typeBackoffs knows which types have a backoff of their own. The task as it is
// claimed does not say it. It is safe for concurrent use.
type typeBackoffs struct {
	c *Client

	mu      sync.Mutex // held while asking: who comes meanwhile waits for the answer
	askedAt time.Time
	names   map[string]bool
}

// has reports whether the type has a backoff, as of a minute ago at most. If the
// server does not say, it is taken to have none, or what it was known to have: the
// worker's own is kinder than none.
func (b *typeBackoffs) has(ctx context.Context, taskType string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.askedAt.IsZero() && time.Since(b.askedAt) < backoffsAge {
		return b.names[taskType]
	}
	ctx, cancel := context.WithTimeout(ctx, backoffsTimeout)
	defer cancel()
	types, err := b.c.Types(ctx)
	b.askedAt = time.Now()
	if err != nil {
		b.c.logger.DebugContext(ctx, "claimq: the types' backoffs are not known", "err", err)
		return b.names[taskType]
	}
	b.names = map[string]bool{}
	for i := range types {
		if types[i].Settings.Backoff != nil {
			b.names[types[i].Name] = true
		}
	}
	return b.names[taskType]
}
