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

// logDenied logs a request from outside that was answered with 401 or 403: from where
// it came and what it was after, but nothing that it sent, which may have a key in it.
func (r *request) logDenied() {
	status := r.http.Response.StatusCode()
	if status != 401 && status != 403 || r.forwarded {
		return
	}
	quiet, ok := r.server.denied.mayLog(r.start)
	if !ok {
		return
	}
	name := ""
	if r.who != nil {
		name = r.who.name
	}
	r.server.logger.Warn("denied a request", "remote_addr", r.http.RemoteAddr(), "status", status, "call", callNames[r.target.call], "key", name,
		"request_id", string(r.id), "more_not_logged", quiet)
}
