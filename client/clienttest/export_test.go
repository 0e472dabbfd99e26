package clienttest

import "time"

// AwaitWaiting returns when so many claims wait.
func (s *Server) AwaitWaiting(count int) {
	for {
		s.node.mu.Lock()
		waiting := len(s.node.waiters)
		s.node.mu.Unlock()
		if waiting == count {
			return
		}
		<-time.After(time.Millisecond)
	}
}
