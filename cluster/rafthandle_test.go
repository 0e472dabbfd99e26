package cluster

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// Raft takes a transfer into its queue now and then although nobody reads it any
// more, and answers it never.
func TestRaftHandle_transferAfterTheEnd(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	closeNode(t, n)
	for range 64 { // each is queued with odds of one half, until one is
		err := n.raft.LeadershipTransferToServer("n2", "127.0.0.1:1").Error()
		if !errors.Is(err, raft.ErrRaftShutdown) {
			t.Fatalf("error is %v, want %v", err, raft.ErrRaftShutdown)
		}
	}
}
