package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// handClock is a clock that only moves when the test moves it.
type handClock struct{ mono time.Duration }

func (c *handClock) Wall() int64         { return int64(c.mono) }
func (c *handClock) Mono() time.Duration { return c.mono }

// A leader that is told for too long that its leadership is being transferred stops itself;
// one that is told so occasionally does not.
func TestNode_StuckTransfer(t *testing.T) {
	t.Parallel()
	clock := &handClock{}
	fatals := 0
	n := compose(&core{clock: clock, cfg: Config{Fatal: func(error) { fatals++ }}})

	for range 3 {
		n.transfers.observeEntry(raft.ErrLeadershipTransferInProgress)
		clock.mono += transferStuckMax - time.Second
		n.transfers.observeEntry(raft.ErrLeadershipTransferInProgress)
		n.transfers.observeEntry(nil)
		clock.mono += 2 * time.Second
	}
	if fatals != 0 {
		t.Fatal("a leader whose transfers end has stopped itself")
	}
	n.transfers.observeEntry(raft.ErrLeadershipTransferInProgress)
	clock.mono += transferStuckMax + time.Second
	n.transfers.observeEntry(raft.ErrLeadershipTransferInProgress)
	if fatals != 1 {
		t.Errorf("%d fatals for a transfer that does not end, want 1", fatals)
	}
}
