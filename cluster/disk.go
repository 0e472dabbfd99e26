package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// diskCheckInterval is how often a node looks at the free space of its disk.
	diskCheckInterval = 250 * time.Millisecond
	// diskSlackPart of the mark has to be free above it before a disk that was low
	// no longer is.
	diskSlackPart = 8
)

// diskRoom is what is free on the data folder's disk.
type diskRoom struct {
	// free, size and mark are bytes; below mark the disk is low. size 0 = not looked
	// at yet.
	free, size, mark atomic.Uint64
	low              atomic.Bool
	// handedOverAt is when the leadership was last handed over for it, or tried to
	// be, in nanoseconds of the monotonic clock; 0 = never.
	handedOverAt atomic.Int64
}

// note takes what was found.
func (d *diskRoom) note(free, size, configured uint64) (low, changed bool) {
	mark := storage.FreeMin(configured, size)
	was := d.low.Load()
	low = free < mark || was && free < mark+mark/diskSlackPart
	d.free.Store(free)
	d.mark.Store(mark)
	d.size.Store(size)
	d.low.Store(low)
	return low, low != was
}

// full returns an *fsm.Overload if less is free than the mark; strained asks for
// what goes on until half of that is left.
func (d *diskRoom) full(strained bool) error {
	if !d.low.Load() || strained && d.free.Load() >= d.mark.Load()/2 {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundDisk,
		Text:  fmt.Sprintf("the data folder's disk has %s free, less than disk_free_min, %s", bytesize.Text(int64(d.free.Load())), bytesize.Text(int64(d.mark.Load()))),
	}
}

// fits reports whether so many bytes leave half of the mark free.
func (d *diskRoom) fits(bytes int64) bool {
	return d.size.Load() == 0 || d.free.Load() >= uint64(bytes)+d.mark.Load()/2
}

// monitorDisk watches the free space of the data folder's disk.
func (n *Node) monitorDisk(ctx context.Context) {
	for ok := true; ok; ok = pause.For(ctx, diskCheckInterval) {
		free, size, err := n.cfg.DiskSpace()
		if err != nil {
			continue // the stores say so, if it matters
		}
		switch low, changed := n.disk.note(free, size, n.cfg.DiskFreeMin); {
		case changed && low:
			n.logger.Warn("the data folder's disk is low: submits are refused while this node leads; free some space, but nothing in the folder",
				"free", bytesize.Text(int64(free)), "disk_free_min", bytesize.Text(int64(n.disk.mark.Load())))
		case changed:
			n.logger.Info("the data folder's disk has room again", "free", bytesize.Text(int64(free)), "disk_free_min", bytesize.Text(int64(n.disk.mark.Load())))
		}
	}
}

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
	if last := n.disk.handedOverAt.Load(); last != 0 && now-time.Duration(last) < diskHandoverInterval {
		return
	}
	n.disk.handedOverAt.Store(int64(now) + 1) // never 0
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
	if !n.disk.low.Load() {
		d.looks = 0
		return nil
	}
	d.looks++
	return heir
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
