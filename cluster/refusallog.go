package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// refusalLogInterval is the least time between two log lines of a refusalLog.
const refusalLogInterval = time.Second

// refusalLog logs refusals of one kind, which others can bring about as often as they
// like, as with a port scan: the first within an interval, and how many it kept quiet
// about. The zero value is ready. It is safe for concurrent use.
type refusalLog struct {
	mu    sync.Mutex
	last  time.Time
	quiet int
}

func (l *refusalLog) warn(logger hclog.Logger, text string, args ...any) {
	l.mu.Lock()
	now := time.Now()
	if now.Sub(l.last) < refusalLogInterval {
		l.quiet++
		l.mu.Unlock()
		return
	}
	quiet := l.quiet
	l.last, l.quiet = now, 0
	l.mu.Unlock()
	logger.Warn(text, append(args, "more_not_logged", quiet)...)
}
