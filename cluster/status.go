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

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

const (
	// statusTimeout bounds asking the other nodes, which happens concurrently.
	statusTimeout = time.Second
	// readyLagMax bounds the entries that a ready node may be behind the known commit
	// index.
	readyLagMax = 1024
	// contactMax bounds the time since a ready follower last heard from its leader.
	contactMax = 2 * time.Second
)

// Ready returns nil if the node knows a leader and has caught up with it, or else why not.
func (n *Node) Ready() error {
	if n.closing.Load() {
		return nodes.ErrShuttingDown
	}
	if n.removed.Load() {
		return errRemoved()
	}
	if n.fsm.Absent() {
		return replica.ErrRestoring
	}
	if l := n.leader.Load(); l != nil {
		if l.serves() {
			return nil
		}
		return l.notYet()
	}
	if n.leaderID() == "" {
		return nodes.ErrNoLeader
	}
	if ms := n.lastContactMS(); ms < 0 || ms > contactMax.Milliseconds() {
		return fmt.Errorf("%w: nothing heard from the leader for %d ms", nodes.ErrNoLeader, ms)
	}
	commit, applied := n.raft.CommitIndex(), n.fsm.AppliedIndex()
	if applied+readyLagMax < commit {
		return fmt.Errorf("this node is catching up: it has applied %d of %d log entries", applied, commit)
	}
	if n.fsm.Level() > fsm.FeatureLevel {
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

// Cluster returns this node's view of the cluster. It asks every other node and waits at
// most a second.
func (n *Node) Cluster(ctx context.Context) nodes.ClusterView {
	servers := n.servers()
	if n.raft == nil {
		servers = []raft.Server{{ID: raft.ServerID(n.uuid)}}
	}
	records := make(map[string]fsm.NodeRecord, len(servers))
	view := nodes.ClusterView{Term: n.currentTerm()}
	n.fsm.Read(func(m *fsm.Machine) {
		view.FeatureLevel = m.Level()
		for _, r := range m.Nodes() {
			records[r.UUID] = r
		}
		if under, ok := m.Restoring(); ok {
			view.Restoring = &under
		}
	})
	records[n.uuid] = n.record
	leader := n.leaderID()
	statuses, errs := n.askStatuses(ctx, servers, statusQuestion{})
	newest := n.record.Level
	var zones *nodes.Zones // of the leader
	for i := range statuses {
		newest = max(newest, statuses[i].Record.Level)
		if string(servers[i].ID) == leader {
			zones = statuses[i].Zones
		}
	}
	majority, by := majorityWallOf(servers, statuses), n.viewer()
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
		v := by.viewOf(s, record, statuses[i], errs[i])
		clock := ""
		if v.ClockAheadMS, clock = clockOf(statuses[i].wall, majority); v.Problem == "" {
			v.Problem = cmp.Or(clock, by.warningOf(s, statuses[i], newest), zonesOf(statuses[i], zones))
		}
		view.Nodes = append(view.Nodes, v)
	}
	slices.SortFunc(view.Nodes, func(a, b nodes.NodeView) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return view
}

// viewer returns a viewer of the members as of now.
func (n *Node) viewer() *viewer {
	v := &viewer{uuid: n.uuid}
	if n.raft != nil {
		v.commit = n.raft.CommitIndex()
	}
	l, now := n.leader.Load(), n.clock.Mono()
	v.silent = func(id raft.ServerID) (time.Duration, bool) {
		if n.raft == nil || l == nil {
			return 0, false
		}
		h, ok := n.raft.confirmer().LastHeard(id, l.term)
		return max(time.Since(h.At), 0), ok
	}
	v.behind = func(id raft.ServerID) (time.Duration, bool) {
		if l == nil {
			return 0, false
		}
		return l.laggards.behind(id, now)
	}
	return v
}

// askStatuses asks all servers concurrently and waits for the answers, at most
// statusTimeout.
func (n *Node) askStatuses(ctx context.Context, servers []raft.Server, q statusQuestion) ([]peerStatus, []error) {
	statuses, errs := make([]peerStatus, len(servers)), make([]error, len(servers))
	n.eachStatus(ctx, servers, q, func(i int, status peerStatus, err error) bool {
		statuses[i], errs[i] = status, err
		return true
	})
	return statuses, errs
}

// eachStatus asks all servers concurrently and calls heard, on this goroutine, with each
// answer as it arrives, until all have arrived or heard returns false. Then it does not
// wait for the rest, which may take a second if a machine is down.
func (n *Node) eachStatus(ctx context.Context, servers []raft.Server, q statusQuestion, heard func(i int, status peerStatus, err error) bool) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	type answer struct {
		of     int
		status peerStatus
		err    error
	}
	answers := make(chan answer, len(servers))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // before the wait
	for i, s := range servers {
		wg.Go(func() {
			status, err := n.askStatus(ctx, s, q)
			answers <- answer{i, status, err}
		})
	}
	for range servers {
		if a := <-answers; !heard(a.of, a.status, a.err) {
			return
		}
	}
}

// addressesOf returns where the member may be reached: its reported address, if that
// differs from the configuration's, and the configuration's.
func (n *Node) addressesOf(s raft.Server) []string {
	recorded := string(s.Address)
	if n.peers != nil {
		if moved := n.peers.Whereabouts().Of(string(s.ID)); moved != "" && moved != recorded {
			return []string{moved, recorded}
		}
	}
	return []string{recorded}
}

// askStatus asks the member s, which may be this node, for its status.
func (n *Node) askStatus(ctx context.Context, s raft.Server, q statusQuestion) (peerStatus, error) {
	asked := n.clock.Mono()
	if string(s.ID) == n.uuid {
		status := n.status(q)
		status.wall = clocks.Read(n.cfg.NodeID, status.WallNS, asked, 0)
		return status, nil
	}
	var status peerStatus
	var err error
	for _, addr := range n.addressesOf(s) {
		asked = n.clock.Mono()
		if status, err = ask[peerStatus](ctx, n, addr, callStatus, q); err == nil && status.Record.UUID == string(s.ID) {
			break
		}
	}
	if err != nil {
		return peerStatus{}, err
	}
	if status.WallNS != 0 {
		status.wall = clocks.Read(status.Record.NodeID, status.WallNS, asked, n.clock.Mono()-asked)
	}
	if status.Record.UUID != string(s.ID) {
		return peerStatus{}, fmt.Errorf("another node, %s, answers at its address", status.Record.UUID)
	}
	return status, nil
}
