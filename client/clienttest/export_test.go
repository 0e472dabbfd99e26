package clienttest

import "time"

// AwaitWaiting waits until count claims are waiting.
func (s *Server) AwaitWaiting(count int) {
	for s.Waiting() != count {
		<-time.After(time.Millisecond)
	}
}

// Waiting returns the number of waiting claims.
func (s *Server) Waiting() int { return s.node.Waiting() }
