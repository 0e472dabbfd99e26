package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// voterDiskInterval is the interval at which a leader asks the voters about their
	// disks.
	voterDiskInterval = 2 * time.Second
	// voterMissesMax is the number of unanswered questions in a row after which the leader
	// no longer counts on a voter.
	voterMissesMax = 3
	// diskChecksMin is the number of checks in a row for which a leader's disk must be low
	// before it hands over its leadership. diskHandoverInterval is the least time between
	// two such attempts of a node, so that two nodes whose disks fill up in turns do not
	// pass it back and forth.
	diskChecksMin        = 2
	diskHandoverInterval = time.Minute
)

// voterDisks checks the voters' disks for a leader. Only run uses it.
type voterDisks struct {
	uuid   string // of the leader
	voters func() []raft.Server
	ask    func(ctx context.Context, voters []raft.Server) ([]peerStatus, []error)
	// full reports whether the leader's own disk is low, and applied how far its state is.
	full    func() bool
	applied func() uint64
	// leave gives the leadership to the node of that name, unless that was tried recently.
	leave func(nodeID string)

	low    map[raft.ServerID]bool // by its last answer
	misses map[raft.ServerID]int  // unanswered questions in a row
	checks int                    // checks in a row for which the leader's own disk was low
}

// run watches the voters' disks until ctx ends. It reports when those that are not low are
// no majority; submits are then refused. When the leader's disk is low, the leadership goes
// to a node whose disk is not.
func (d *voterDisks) run(ctx context.Context, majorityLow func(bool)) {
	d.low, d.misses = make(map[raft.ServerID]bool), make(map[raft.ServerID]int)
	for ok := true; ok; ok = pause.For(ctx, pause.Beat(voterDiskInterval)) {
		voters := d.voters()
		statuses, errs := d.ask(ctx, voters)
		if ctx.Err() != nil {
			return
		}
		heir := d.judge(voters, statuses, errs)
		majorityLow(d.majorityLow(voters))
		if heir != nil && d.checks >= diskChecksMin {
			d.leave(heir.NodeID)
		}
	}
}

// judge evaluates the answers and returns the node to lead instead of this one, or nil if
// its own disk is not low or no node is better.
func (d *voterDisks) judge(voters []raft.Server, statuses []peerStatus, errs []error) (heir *fsm.NodeRecord) {
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
		d.checks = 0
		return nil
	}
	d.checks++
	return heir
}

// majorityLow reports whether low disks are the reason that the voters with room are no
// majority.
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
