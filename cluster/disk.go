package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
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

// diskWatch is a leader's look at the voters' disks. It belongs to its run.
type diskWatch struct {
	uuid   string // of the leader
	voters func() []raft.Server
	ask    func(ctx context.Context, voters []raft.Server) ([]peerStatus, []error)
	// full reports whether the leader's own disk is low, applied how far its state is.
	full    func() bool
	applied func() uint64
	// leave gives the leadership to the node of that name, unless that was tried of late.
	leave func(nodeID string)

	low    map[raft.ServerID]bool // that it said so when it last answered
	misses map[raft.ServerID]int  // asked in a row without an answer
	looks  int                    // in a row that the leader's own was low
}

// run watches the voters' disks until ctx ends, and says when those of so many
// are low that no majority would be left if they stopped: submits are refused then.
// When the leader's is low, the leadership goes to one whose disk is not.
func (d *diskWatch) run(ctx context.Context, majorityLow func(bool)) {
	d.low, d.misses = make(map[raft.ServerID]bool), make(map[raft.ServerID]int)
	for ok := true; ok; ok = pause.For(ctx, pause.Beat(voterDiskInterval)) {
		voters := d.voters()
		statuses, errs := d.ask(ctx, voters)
		if ctx.Err() != nil {
			return
		}
		heir := d.judge(voters, statuses, errs)
		majorityLow(d.majorityLow(voters))
		if heir != nil && d.looks >= diskLooksMin {
			d.leave(heir.NodeID)
		}
	}
}

// judge takes what the voters said, and returns the one to lead in this node's
// place, nil if its own disk is not low or none is better.
func (d *diskWatch) judge(voters []raft.Server, statuses []peerStatus, errs []error) (heir *fsm.NodeRecord) {
	best := uint64(0)
	for i, s := range voters {
		if errs[i] != nil {
			d.misses[s.ID]++
			continue
		}
		status := &statuses[i]
		d.misses[s.ID], d.low[s.ID] = 0, status.DiskLow
		if string(s.ID) != d.uuid && !status.DiskLow && status.AppliedIndex+readyLagMax >= d.applied() && status.AppliedIndex >= best {
			best, heir = status.AppliedIndex, &status.Record
		}
	}
	if !d.full() {
		d.looks = 0
		return nil
	}
	d.looks++
	return heir
}

// majorityLow reports whether the voters that have room are no majority, because
// of the disks of others.
func (d *diskWatch) majorityLow(voters []raft.Server) bool {
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
