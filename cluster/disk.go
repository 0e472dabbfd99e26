package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// voterDiskInterval is how often a leader asks the voters about their disks.
	voterDiskInterval = 2 * time.Second
	// voterMissesMax is how often in a row a voter may not answer before the leader
	// no longer counts on it.
	voterMissesMax = 3
	// diskLooksMin is how many looks in a row a leader's disk must be low before it
	// hands its leadership over; diskHandoverInterval the least time between two such
	// tries of one node: two nodes whose disks fill up by turns do not pass it to and
	// fro.
	diskLooksMin         = 2
	diskHandoverInterval = time.Minute
)

// voterDisks is what a leader knows of the voters' disks. It belongs to runDisks.
type voterDisks struct {
	low    map[raft.ServerID]bool // that it said so when it last answered
	misses map[raft.ServerID]int  // asked in a row without an answer
	looks  int                    // in a row that the leader's own was low
}

// runDisks watches the voters' disks until the scope ends. When those of so many
// are low that no majority would be left if they stopped, submits are refused;
// when the leader's is low, the leadership goes to one whose disk is not.
func (l *leadership) runDisks() {
	d := voterDisks{low: make(map[raft.ServerID]bool), misses: make(map[raft.ServerID]int)}
	for {
		l.lookAtDisks(&d)
		if !pause.For(l.ctx, voterDiskInterval) {
			return
		}
	}
}

func (l *leadership) lookAtDisks(d *voterDisks) {
	n := l.node
	voters := make([]raft.Server, 0, 5)
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s)
		}
	}
	statuses, errs := n.askStatuses(l.ctx, voters, statusQuestion{})
	if l.ctx.Err() != nil {
		return
	}
	heir := d.judge(n, voters, statuses, errs)
	l.disksLow.Store(d.majorityLow(voters))
	if heir == nil || d.looks < diskLooksMin {
		return
	}
	now := n.clock.Mono()
	if last := n.diskLeftAt.Load(); last != 0 && now-time.Duration(last) < diskHandoverInterval {
		return
	}
	n.diskLeftAt.Store(int64(now) + 1) // never 0
	l.node.logger.Warn("handing the leadership over: the disk of this node is low, that of the other is not", "node_id", heir.NodeID)
	// In a goroutine of the node's: the leadership's have to end for it.
	n.start(func() { n.leaveLowDisk(heir.NodeID) })
}

// judge takes what the voters said, and returns the one to lead in this node's
// place, nil if its own disk is not low or none is better.
func (d *voterDisks) judge(n *Node, voters []raft.Server, statuses []peerStatus, errs []error) (heir *fsm.NodeRecord) {
	best := uint64(0)
	for i, s := range voters {
		if errs[i] != nil {
			d.misses[s.ID]++
			continue
		}
		status := &statuses[i]
		d.misses[s.ID], d.low[s.ID] = 0, status.DiskLow
		if string(s.ID) != n.uuid && !status.DiskLow && status.AppliedIndex+readyLagMax >= n.fsm.AppliedIndex() && status.AppliedIndex >= best {
			best, heir = status.AppliedIndex, &status.Record
		}
	}
	if !n.space.Disk.Low() {
		d.looks = 0
		return nil
	}
	d.looks++
	return heir
}

// votersLow reports whether this node leads and the disks of so many voters are low that no
// majority may be left.
func (n *Node) votersLow() bool {
	l := n.leader.Load()
	return l != nil && l.disksLow.Load()
}

// majorityLow reports whether the voters that have room are no majority, because
// of the disks of others.
func (d *voterDisks) majorityLow(voters []raft.Server) bool {
	roomy, low := 0, false
	for _, s := range voters {
		switch {
		case d.low[s.ID]:
			low = true
		case d.misses[s.ID] < voterMissesMax:
			roomy++
		}
	}
	return low && roomy <= len(voters)/2
}

// leaveLowDisk gives the leadership to the node, once. If that fails this node
// goes on leading, and refuses submits.
func (n *Node) leaveLowDisk(nodeID string) {
	ctx, cancel := context.WithTimeout(n.ctx, handoverTimeout)
	defer cancel()
	if _, err := n.Transfer(ctx, nodeID); err != nil && n.ctx.Err() == nil && !errors.Is(err, nodes.ErrNotLeader) {
		n.logger.Warn("leadership not handed over", "node_id", nodeID, "error", err)
	}
}
