package api

import (
	"sync"
	"time"
)

// sampled is a kind of log line that strangers can bring about as often as they like:
// of those within an interval the first is logged, the others are counted. The zero
// value is ready. It is safe for concurrent use.
type sampled struct {
	mu       sync.Mutex
	loggedAt time.Time
	quiet    int // that were not logged since
}

// sampledInterval is the least time between two log lines of a kind.
const sampledInterval = time.Second

// mayLog says whether one may be logged now, and how many before it were not.
func (s *sampled) mayLog(now time.Time) (quiet int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.loggedAt) < sampledInterval {
		s.quiet++
		return 0, false
	}
	quiet = s.quiet
	s.loggedAt, s.quiet = now, 0
	return quiet, true
}
