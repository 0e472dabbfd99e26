package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// callStatus is the call by which a node asks another one for its status: statusQuestion →
// peerStatus.
const callStatus = "status"

const (
	suffrageVoter    = "voter"
	suffrageNonvoter = "nonvoter"

	// statusTimeout bounds asking the other nodes, which happens concurrently.
	statusTimeout = time.Second
	// readyLagMax bounds the entries that a ready node may be behind the known commit
	// index.
	readyLagMax = 1024
)

// statuses reports this node's status, asks other nodes for theirs, and makes the view of the cluster
// from them.
type statuses struct {
	*role
	hints lease.Hints // of a leader's U, received or sent
}

// statusQuestion asks a node for its status.
type statusQuestion struct {
	// ChainAt is the index for which the node should report its chain.
	ChainAt uint64 `json:"chain_at,omitempty"`
}

// peerStatus is a node's description of itself.
type peerStatus struct {
	Record        fsm.NodeRecord  `json:"record"`
	State         string          `json:"state"`
	Term          uint64          `json:"term"`
	AppliedIndex  uint64          `json:"applied_index"`
	LastContactMS int64           `json:"last_contact_ms"`
	WallNS        int64           `json:"wall_ns,omitempty"` // wall clock in ns since the Unix epoch; missing from older versions
	DiskLow       bool            `json:"disk_low,omitempty"`
	Room          *nodes.NodeRoom `json:"room,omitempty"`  // missing from older versions
	Zones         *nodes.Zones    `json:"zones,omitempty"` // missing from older versions
	Removed       bool            `json:"removed,omitempty"`
	// Chain is the chain at the requested index, "" if unknown (yet).
	Chain string `json:"chain,omitempty"`
	// Doubt says why it leads but does not serve; Divided says whether that is because the
	// voters differ.
	Doubt   string `json:"doubt,omitempty"`
	Divided bool   `json:"divided,omitempty"`
	// Hint is the latest hint of a leader's U that the node received.
	Hint lease.Hint `json:"hint"`

	// wall is WallNS as read against the asker's clock.
	wall clocks.Reading
}

// ready is Node.Ready.
func (st *statuses) ready() error {
	if st.closing.Load() {
		return nodes.ErrShuttingDown
	}
	if st.removed.Load() {
		return errRemoved()
	}
	if st.fsm.Absent() {
		return replica.ErrRestoring
	}
	if l := st.leader.Load(); l != nil {
		if l.serves() {
			return nil
		}
		return l.notYet()
	}
	if st.leaderID() == "" {
		return nodes.ErrNoLeader
	}
	if ms := st.lastContactMS(); ms < 0 || ms > contactMax.Milliseconds() {
		return fmt.Errorf("%w: nothing heard from the leader for %d ms", nodes.ErrNoLeader, ms)
	}
	commit, applied := st.raft.CommitIndex(), st.fsm.AppliedIndex()
	if applied+readyLagMax < commit {
		return fmt.Errorf("this node is catching up: it has applied %d of %d log entries", applied, commit)
	}
	if st.fsm.Level() > fsm.FeatureLevel() {
		return errors.New("the cluster's feature level is above this binary's")
	}
	return nil
}

// view asks every node for its status, for at most a second, and returns the view of the cluster.
func (st *statuses) view(ctx context.Context) nodes.ClusterView {
	servers := st.servers()
	if st.raft == nil {
		servers = []raft.Server{{ID: raft.ServerID(st.uuid)}}
	}
	records := make(map[string]fsm.NodeRecord, len(servers))
	view := nodes.ClusterView{Term: st.currentTerm()}
	st.fsm.Read(func(m *fsm.Machine) {
		view.FeatureLevel = m.Level()
		for _, r := range m.Nodes() {
			records[r.UUID] = r
		}
		if under, ok := m.Restoring(); ok {
			view.Restoring = &under
		}
	})
	records[st.uuid] = st.record
	leader := st.leaderID()
	statuses, errs := st.askStatuses(ctx, servers, statusQuestion{})
	newest := st.record.Level
	var zones *nodes.Zones // of the leader
	for i := range statuses {
		newest = max(newest, statuses[i].Record.Level)
		if string(servers[i].ID) == leader {
			zones = statuses[i].Zones
		}
	}
	majority, by := majorityWallOf(servers, statuses), st.viewer()
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
func (st *statuses) viewer() *viewer {
	v := &viewer{uuid: st.uuid}
	if st.raft != nil {
		v.commit = st.raft.CommitIndex()
	}
	l, now := st.leader.Load(), st.clock.Mono()
	v.silent = func(id raft.ServerID) (time.Duration, bool) {
		if st.raft == nil || l == nil {
			return 0, false
		}
		h, ok := st.raft.confirmer().LastHeard(id, l.term)
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
func (st *statuses) askStatuses(ctx context.Context, servers []raft.Server, q statusQuestion) ([]peerStatus, []error) {
	statuses, errs := make([]peerStatus, len(servers)), make([]error, len(servers))
	st.eachStatus(ctx, servers, q, func(i int, status peerStatus, err error) bool {
		statuses[i], errs[i] = status, err
		return true
	})
	return statuses, errs
}

// eachStatus asks all servers concurrently and calls heard, on this goroutine, with each
// answer as it arrives, until all have arrived or heard returns false. Then it does not
// wait for the rest, which may take a second if a machine is down.
func (st *statuses) eachStatus(ctx context.Context, servers []raft.Server, q statusQuestion, heard func(i int, status peerStatus, err error) bool) {
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
			status, err := st.askStatus(ctx, s, q)
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
func (st *statuses) addressesOf(s raft.Server) []string {
	recorded := string(s.Address)
	if st.peers != nil {
		if moved := st.peers.Whereabouts().Of(string(s.ID)); moved != "" && moved != recorded {
			return []string{moved, recorded}
		}
	}
	return []string{recorded}
}

// askStatus asks the member s, which may be this node, for its status.
func (st *statuses) askStatus(ctx context.Context, s raft.Server, q statusQuestion) (peerStatus, error) {
	asked := st.clock.Mono()
	if string(s.ID) == st.uuid {
		status := st.status(q)
		status.wall = clocks.Read(st.cfg.NodeID, status.WallNS, asked, 0)
		return status, nil
	}
	var status peerStatus
	var err error
	for _, addr := range st.addressesOf(s) {
		asked = st.clock.Mono()
		if status, err = ask[peerStatus](ctx, st.core, addr, callStatus, q); err == nil && status.Record.UUID == string(s.ID) {
			break
		}
	}
	if err != nil {
		return peerStatus{}, err
	}
	if status.WallNS != 0 {
		status.wall = clocks.Read(status.Record.NodeID, status.WallNS, asked, st.clock.Mono()-asked)
	}
	if status.Record.UUID != string(s.ID) {
		return peerStatus{}, fmt.Errorf("another node, %s, answers at its address", status.Record.UUID)
	}
	return status, nil
}

// status returns this node's description of itself.
func (st *statuses) status(q statusQuestion) peerStatus {
	s := peerStatus{
		Record: st.record, State: "leader", Term: st.currentTerm(), AppliedIndex: st.fsm.AppliedIndex(), WallNS: st.clock.Wall(), DiskLow: st.space.Disk.Low(),
		Zones: st.zones(), Room: st.space.Left(), Removed: st.removed.Load(), Chain: st.fsm.ChainAt(q.ChainAt), Hint: st.hints.Latest(),
	}
	if st.raft == nil {
		return s
	}
	if d := st.doubt(); d != nil {
		s.Doubt, s.Divided = d.text, d.divided
	}
	switch st.raft.State() {
	case raft.Leader:
	case raft.Candidate:
		s.State = "candidate"
	default:
		s.State = "follower"
	}
	if s.State != "leader" {
		s.LastContactMS = st.lastContactMS()
	}
	return s
}

// zones returns the version of the time zone data that this node uses.
func (st *statuses) zones() *nodes.Zones {
	data := st.cfg.Zones.Current()
	return &nodes.Zones{Version: data.Version(), Sum: data.Sum()}
}

func (st *statuses) answerStatus(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[statusQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(st.status(q))
}

// catchUpMax is the time to catch up after which a nonvoter is reported as a problem.
const catchUpMax = 5 * time.Minute

// viewer describes members by their own statuses and by what this node knows about them.
type viewer struct {
	uuid   string // of this node
	commit uint64 // the commit index that it knows
	// silent returns how long ago a follower was last heard from, and behind for how long a
	// nonvoter that should get a vote has been behind. Only the leader knows them.
	silent, behind func(raft.ServerID) (took time.Duration, ok bool)
}

// viewOf describes a node and, if it takes no part, why.
func (o *viewer) viewOf(s raft.Server, record fsm.NodeRecord, status peerStatus, err error) nodes.NodeView {
	v := nodes.NodeView{NodeRecord: record, Suffrage: suffrageVoter, State: "unknown", LastContactMS: -1}
	if s.Suffrage != raft.Voter {
		v.Suffrage = suffrageNonvoter
	}
	if err != nil {
		v.Problem = fmt.Sprintf("it does not answer on its peer port: %v", err)
		if since, ok := o.silent(s.ID); ok {
			v.LastContactMS = since.Milliseconds()
			v.Problem = fmt.Sprintf("it was last heard of %s ago and does not answer on its peer port: %v", since.Round(time.Second), err)
		}
		return v
	}
	v.State, v.LastContactMS, v.AppliedIndex, v.Room = status.State, status.LastContactMS, status.AppliedIndex, status.Room
	v.Zones = status.Zones
	v.Problem = o.problemOf(status)
	v.TakesPart = v.Problem == ""
	if v.TakesPart && status.DiskLow {
		v.Problem = "its disk is low: free some space before it is full, when the node stops"
	}
	if string(s.ID) == o.uuid {
		v.LastContactMS = 0
	}
	v.Healthy = v.Problem == ""
	return v
}

// problemOf says why a node that answers takes no part, or returns "".
func (o *viewer) problemOf(status peerStatus) string {
	switch {
	case status.Removed:
		return "it was removed from the cluster: stop it"
	case status.State == "candidate":
		return "it finds no leader"
	case status.Doubt != "":
		return "it " + status.Doubt
	case status.State == "follower" && (status.LastContactMS < 0 || status.LastContactMS > contactMax.Milliseconds()):
		return "it hears nothing from the leader"
	case status.AppliedIndex+readyLagMax < o.commit:
		return fmt.Sprintf("it is %d log entries behind", o.commit-status.AppliedIndex) + o.catchingUp(raft.ServerID(status.Record.UUID))
	}
	return ""
}

// warningOf says what a healthy node still needs, or returns "". newest is the highest
// feature level that any node knows.
func (o *viewer) warningOf(s raft.Server, status peerStatus, newest uint32) string {
	switch {
	case status.Record.Level < newest:
		return fmt.Sprintf("its version %s knows feature level %d, others know %d: run the new version on it", status.Record.Version, status.Record.Level, newest)
	case s.Suffrage != raft.Voter:
		if behind := o.catchingUp(s.ID); behind != "" {
			return "it is catching up" + behind
		}
	}
	return ""
}

// zonesOf says what to do about a node's time zones, or returns "". leads are the leader's,
// nil if unknown.
func zonesOf(status peerStatus, leads *nodes.Zones) string {
	if status.Zones == nil || leads == nil || *status.Zones == *leads {
		return ""
	}
	return fmt.Sprintf("it has the time zones of %s (%s), the leader those of %s (%s), so slots of schedules move when it leads: run one version and one zone_data_file on all nodes",
		status.Zones.Version, status.Zones.Sum, leads.Version, leads.Sum)
}

// majorityWallOf returns the majority of the voters' wall clocks, nil if too few have
// answered.
func majorityWallOf(servers []raft.Server, statuses []peerStatus) *lease.Wall {
	var walls []lease.Wall
	voters := 0
	for i, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if statuses[i].WallNS != 0 {
			walls = append(walls, statuses[i].wall.Wall)
		}
	}
	majority, ok := lease.MajorityWall(walls, voters)
	if !ok {
		return nil
	}
	return &majority
}

// clockOf returns how many milliseconds a wall clock is ahead of the majority's, nil if
// unknown, and what to do about it, or "".
func clockOf(r clocks.Reading, majority *lease.Wall) (aheadMS *int64, problem string) {
	if r.NodeID == "" || majority == nil {
		return nil, ""
	}
	ahead, apart := r.Ahead(*majority), r.Apart(*majority)
	ms := ahead.Milliseconds()
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	switch off := apart.Round(100 * time.Millisecond); {
	case !lease.Follows(apart):
		problem = fmt.Sprintf("its wall clock is %s %s what most voters' show, so times of day do not follow it when it leads: see that NTP sets it", off, direction)
	case apart > clocks.ApartMax:
		problem = fmt.Sprintf("its wall clock is %s %s what most voters' show: see that NTP sets it", off, direction)
	}
	return &ms, problem
}

// catchingUp describes the state of a nonvoter that should get a vote and is behind; "" for
// others. Only the leader knows.
func (o *viewer) catchingUp(id raft.ServerID) string {
	took, ok := o.behind(id)
	switch {
	case !ok:
		return ""
	case took < catchUpMax:
		return ", and gets its vote once it has caught up"
	}
	return fmt.Sprintf(", and has not caught up in %s: look at its disk and its network; it gets no vote before", took.Round(time.Second))
}
