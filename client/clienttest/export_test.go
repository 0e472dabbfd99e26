package clienttest

import "time"

// AwaitWaiting returns when so many claims wait.
func (s *Server) AwaitWaiting(count int) {
	for s.Waiting() != count {
		<-time.After(time.Millisecond)
	}
}

// Waiting returns how many claims wait.
func (s *Server) Waiting() int {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return len(s.node.waiters)
}
