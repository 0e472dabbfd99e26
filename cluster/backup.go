package cluster

import (
	"context"
	"io"

	"github.com/claimq/claimq/fsm"
)

// TakeSnapshot writes a snapshot now and compacts the log behind it.
func (n *Node) TakeSnapshot(ctx context.Context) (index uint64, err error) {
	if n.raft == nil {
		return 0, errNoRaft
	}
	return 0, n.takeSnapshot(ctx)
}

// SaveBackup captures this node's state.
func (n *Node) SaveBackup(context.Context) (*fsm.Snapshot, error) { return nil, fsm.ErrNoLeader }

// RestoreBackup makes the backup that r reads the state of an empty cluster.
func (n *Node) RestoreBackup(context.Context, io.Reader) (index uint64, err error) {
	return 0, fsm.ErrNoLeader
}
