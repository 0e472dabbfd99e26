package port

import (
	"sync"
	"time"
)

// Sampled limits a kind of log line that strangers can cause as often as they like: in each interval the first one is
// logged and the others are counted. The zero value is ready. It is safe for concurrent use.
type Sampled struct {
	mu       sync.Mutex
	loggedAt time.Time
	quiet    int // not logged since
}

// SampledInterval is the least time between two log lines of a kind.
const SampledInterval = time.Second

// MayLog reports whether a line may be logged now, and how many before it were not.
func (s *Sampled) MayLog(now time.Time) (quiet int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.loggedAt) < SampledInterval {
		s.quiet++
		return 0, false
	}
	quiet = s.quiet
	s.loggedAt, s.quiet = now, 0
	return quiet, true
}
