package peer

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// RefusalLogInterval is the least time between two lines of a RefusalLog.
const RefusalLogInterval = time.Second

// RefusalLog logs refusals that others can cause at will, for instance with a port scan: at
// most one within an interval, with the number of those left out. The zero value is ready
// to use. It is safe for concurrent use.
type RefusalLog struct {
	mu    sync.Mutex
	last  time.Time
	quiet int
}

// Warn logs a refusal, unless another one was logged within the interval.
func (l *RefusalLog) Warn(logger hclog.Logger, text string, args ...any) {
	l.mu.Lock()
	now := time.Now()
	if now.Sub(l.last) < RefusalLogInterval {
		l.quiet++
		l.mu.Unlock()
		return
	}
	quiet := l.quiet
	l.last, l.quiet = now, 0
	l.mu.Unlock()
	logger.Warn(text, append(args, "more_not_logged", quiet)...)
}
