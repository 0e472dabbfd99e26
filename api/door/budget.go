package door

import (
	"context"
	"strconv"
	"sync"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// Budget bounds the memory of large answers over all connections. Without it, clients that ask for large answers and do
// not read them could make a node hold one for each connection. An answer reserves its size before the state is read for
// it, and frees it once it is written. A Budget is safe for concurrent use.
type Budget struct {
	most int64

	mu       sync.Mutex // guards what follows
	reserved int64
	freed    chan struct{} // closed by the next Free; nil: no goroutine waits for that
}

// TryReserve reserves n bytes, or returns false if they do not fit. If nothing is reserved, any n fits.
func (b *Budget) TryReserve(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tryReserveLocked(n)
}

func (b *Budget) tryReserveLocked(n int64) bool {
	if b.reserved > 0 && b.reserved+n > b.most {
		return false
	}
	b.reserved += n
	return true
}

// Reserve waits until n bytes fit, and reserves them. It returns false if ctx ends first.
func (b *Budget) Reserve(ctx context.Context, n int64) bool {
	for {
		b.mu.Lock()
		if b.tryReserveLocked(n) {
			b.mu.Unlock()
			return true
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// Free gives n reserved bytes back.
func (b *Budget) Free(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= n
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// Reserved returns the number of reserved bytes.
func (b *Budget) Reserved() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserved
}

// Full returns the refusal of an answer that does not fit.
func (b *Budget) Full() *refuse.Refusal {
	return refuse.Overloaded(nodes.BoundAnswers, "The server holds as many large answers that were not read yet as it may, of "+strconv.FormatInt(b.most, 10)+" bytes")
}
