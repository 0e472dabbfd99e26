package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

// The stores are closed once the gate is: so closing it waits for a heartbeat
// that is being handled, and no other is handled after it.
func TestHeartbeats_close(t *testing.T) {
	t.Parallel()
	var h heartbeats
	begun, release := make(chan struct{}), make(chan struct{})
	steps := make(chan string, 3)
	heartbeat := h.through(func(raft.RPC) {
		close(begun)
		<-release
		steps <- "handled"
	})
	go heartbeat(raft.RPC{})
	<-begun
	go func() {
		h.close()
		steps <- "closed"
	}()
	waitUntil(t, "closing has begun", func() bool {
		free := h.mu.TryRLock()
		if free {
			h.mu.RUnlock()
		}
		return !free
	})
	close(release)
	if first, second := <-steps, <-steps; first != "handled" || second != "closed" {
		t.Errorf("%s, then %s", first, second)
	}
	heartbeat(raft.RPC{}) // it would close begun twice
}
