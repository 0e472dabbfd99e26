package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

const (
	// statusTimeout bounds the questions to the other nodes; they are asked at
	// the same time.
	statusTimeout = time.Second
	// readyLagMax is how far, in entries, a node that is ready may be behind
	// what it knows to be committed.
	readyLagMax = 1024
	// contactMax is how long ago a follower that is ready has heard from its
	// leader at most.
	contactMax = 2 * time.Second
)

// Ready returns nil if the node knows a leader and has caught up with it, else
// why not.
func (n *Node) Ready() error {
	if n.closing.Load() {
		return fsm.ErrShuttingDown
	}
	if n.removed.Load() {
		return errRemoved()
	}
	if n.fsm.absent.Load() {
		return errRestoring
	}
	if l := n.leader.Load(); l != nil {
		if l.serves() {
			return nil
		}
		return fmt.Errorf("%w: this node has just been elected", fsm.ErrNoLeader)
	}
	if n.leaderID() == "" {
		return fsm.ErrNoLeader
	}
	if ms := n.lastContactMS(); ms < 0 || ms > contactMax.Milliseconds() {
		return fmt.Errorf("%w: nothing heard from the leader for %d ms", fsm.ErrNoLeader, ms)
	}
	commit, applied := n.raft.CommitIndex(), n.fsm.applied.Load()
	if applied+readyLagMax < commit {
		return fmt.Errorf("this node is catching up: it has applied %d of %d log entries", applied, commit)
	}
	if n.fsm.level.Load() > fsm.FeatureLevel {
		return errors.New("the cluster's feature level is above this binary's")
	}
	return nil
}

// lastContactMS returns how long ago the leader was last heard from, -1 = never.
func (n *Node) lastContactMS() int64 {
	last := n.raft.LastContact()
	if last.IsZero() {
		return -1
	}
	return time.Since(last).Milliseconds()
}

// Cluster returns what this node sees of the cluster. It asks every other node
// and waits a second at most.
func (n *Node) Cluster(ctx context.Context) fsm.ClusterView {
	servers := n.servers()
	if n.raft == nil {
		servers = []raft.Server{{ID: raft.ServerID(n.uuid)}}
	}
	records := make(map[string]fsm.NodeRecord, len(servers))
	view := fsm.ClusterView{Term: n.currentTerm()}
	n.fsm.read(func(m *fsm.Machine) {
		view.FeatureLevel = m.Level()
		for _, r := range m.Nodes() {
			records[r.UUID] = r
		}
	})
	records[n.uuid] = n.record
	leader := n.leaderID()
	statuses, errs := n.askStatuses(ctx, servers)
	newest := n.record.Level
	for i := range statuses {
		newest = max(newest, statuses[i].Record.Level)
	}
	for i, s := range servers {
		record, ok := records[string(s.ID)]
		if !ok {
			record = fsm.NodeRecord{UUID: string(s.ID), PeerAddr: string(s.Address)}
		}
		if errs[i] == nil {
			record = statuses[i].Record
		}
		if record.UUID == leader {
			view.Leader = record.NodeID
		}
		v := n.viewOf(s, record, statuses[i], errs[i])
		if v.Problem == "" {
			v.Problem = n.warningOf(s, statuses[i], newest)
		}
		view.Nodes = append(view.Nodes, v)
	}
	slices.SortFunc(view.Nodes, func(a, b fsm.NodeView) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return view
}

// askStatuses asks all servers at once.
func (n *Node) askStatuses(ctx context.Context, servers []raft.Server) ([]peerStatus, []error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	statuses, errs := make([]peerStatus, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		if string(s.ID) == n.uuid {
			statuses[i] = n.status()
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			wall, at := n.clock.Wall(), n.clock.Mono()
			statuses[i], errs[i] = ask[peerStatus](ctx, n, string(s.Address), callStatus, struct{}{})
			if statuses[i].WallNS != 0 {
				statuses[i].wall = readWall(statuses[i].WallNS, wall, at, n.clock.Mono()-at)
			}
			if errs[i] == nil && statuses[i].Record.UUID != string(s.ID) {
				errs[i] = fmt.Errorf("another node, %s, answers at its address", statuses[i].Record.UUID)
			}
		}()
	}
	wg.Wait()
	return statuses, errs
}
