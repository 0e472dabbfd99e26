package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// errNodeClosed is the cause with which a node's context ends.
var errNodeClosed = errors.New("the node is closed")

// core has the state that every part of a node needs: who the node is, how long it lives, its copy of the
// state, its Raft, and a way to ask other nodes. The parts of a node are layers: core, then role
// (whether this node leads), then the owners of one concern each (membership, snapshots, ...),
// which know only the owners below them. Node composes them all.
type core struct {
	cfg    Config
	logger hclog.Logger
	uuid   string
	record fsm.NodeRecord // this node as recorded by the cluster
	clock  ClockSource
	stats  *nodeStats

	fsm     *replica.Replica
	space   *replica.Space
	batcher *batch.Batcher
	parts   Parts
	raft    *raftHandle   // nil without Raft
	logs    raft.LogStore // nil without Raft
	removed atomic.Bool   // it is no longer a member, and Raft is shut down
	left    chan struct{} // closed once removed is set

	// Only for a node opened by Open; nil in memory.
	dir   *storage.Dir
	peers *peer.Port
	// call asks the node at a peer address; nil if this node cannot ask others.
	call func(ctx context.Context, addr, name string, body []byte) ([]byte, error)

	ctx     context.Context // ends when the node closes, with errNodeClosed
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup // all goroutines of the node
	closing atomic.Bool
}

// ClockSource provides a node's time. Tests inject their own.
type ClockSource = lease.ClockSource

const (
	// handoverTimeout bounds how long a stopping leader tries to transfer its leadership.
	handoverTimeout = 5 * time.Second
	// contactMax bounds the time since a ready follower last heard from its leader.
	contactMax = 2 * time.Second
	// firstLevel is the feature level of a new cluster if not all voters report a higher
	// one. An operator decides about higher ones.
	firstLevel = 1
)

func (c *core) start(fn func()) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		fn()
	}()
}

// await waits for one of Raft's futures, which can hang, until ctx ends.
func (c *core) await(ctx context.Context, begin func() raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- begin().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// currentTerm returns Raft's term.
func (c *core) currentTerm() uint64 {
	if c.raft == nil {
		return 1
	}
	return c.raft.CurrentTerm()
}

// servers returns the members by Raft's latest configuration.
func (c *core) servers() []raft.Server {
	if c.raft == nil {
		return nil
	}
	f := c.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// votersNow returns the voters of Raft's latest configuration, including this node if it is
// one.
func (c *core) votersNow() []raft.Server {
	var voters []raft.Server // a new slice, because Raft owns the one that servers returns
	for _, s := range c.servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s)
		}
	}
	return voters
}

// clockVoters returns the ids of all voters, and the voters other than this node. Without Raft
// this node is the only voter.
func (c *core) clockVoters() (ids []raft.ServerID, others []raft.Server) {
	if c.raft == nil {
		return []raft.ServerID{raft.ServerID(c.uuid)}, nil
	}
	for _, s := range c.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		ids = append(ids, s.ID)
		if string(s.ID) != c.uuid {
			others = append(others, s)
		}
	}
	return ids, others
}

// voters returns the other voters, whether this node is one, and whether it leads in term.
func (c *core) voters(term uint64) (others []raft.ServerID, self, leads bool) {
	for _, s := range c.servers() {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == c.uuid:
			self = true
		default:
			others = append(others, s.ID)
		}
	}
	return others, self, c.raft.State() == raft.Leader && c.raft.CurrentTerm() == term
}

// leaderID returns the UUID of the leader that this node knows, or "".
func (c *core) leaderID() string {
	switch {
	case c.raft == nil:
		return c.uuid
	case c.removed.Load():
		return ""
	}
	_, id := c.raft.LeaderWithID()
	return string(id)
}

// lastIndex returns the index of the last entry in this node's log.
func (c *core) lastIndex() uint64 {
	if c.raft == nil {
		return 0
	}
	return c.raft.LastIndex()
}

// lastContactMS returns how long ago the leader was last heard from, -1 = never.
func (c *core) lastContactMS() int64 {
	last := c.raft.LastContact()
	if last.IsZero() {
		return -1
	}
	return time.Since(last).Milliseconds()
}

// nameOfMember returns the recorded name of a node, or its UUID.
func (c *core) nameOfMember(uuid string) string {
	var record fsm.NodeRecord
	c.fsm.Read(func(m *fsm.Machine) { record, _ = m.Node(uuid) })
	if record.NodeID == "" {
		return uuid
	}
	return record.NodeID
}

// checkLevel refuses a command that some node of the cluster may not know, because that
// node would stop at it.
func (c *core) checkLevel(cmd command.Command) error {
	needs, has := command.LevelOf(cmd), c.fsm.Level()
	if needs <= max(has, firstLevel) {
		return nil
	}
	return fmt.Errorf("%w: it needs level %d, the cluster is at %d", nodes.ErrLevel, needs, has)
}

// clusterID returns the cluster's identity, "" for a node in memory.
func (c *core) clusterID() string {
	if c.dir == nil {
		return ""
	}
	return c.dir.Identity().ClusterID
}

// handOver transfers the leadership to another voter, if there is one: of those heard from
// recently, to the one with the most of the log. Raft by itself might pick one that is down.
func (c *core) handOver(ctx context.Context) {
	others, _, leads := c.voters(c.currentTerm())
	if len(others) == 0 || !leads {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handoverTimeout)
	defer cancel()
	addrs := make(map[raft.ServerID]raft.ServerAddress)
	for _, s := range c.servers() {
		addrs[s.ID] = s.Address
	}
	var err error
	for _, id := range c.raft.confirmer().ByContact(others, contactMax) {
		if ctx.Err() != nil {
			return
		}
		err = c.await(ctx, func() raft.Future { return c.raft.LeadershipTransferToServer(id, addrs[id]) })
		if err == nil {
			c.logger.Info("leadership handed over", "uuid", id)
			return
		}
	}
	c.logger.Warn("leadership not handed over", "error", err)
}

var errCannotAsk = errors.New("this node cannot ask others")

// ask calls another node and decodes its answer.
func ask[T any](ctx context.Context, c *core, addr, name string, question any) (answer T, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	if c.call == nil {
		return answer, errCannotAsk
	}
	text, err := c.call(ctx, addr, name, body)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

// differsAdvice says what to do with a node that differs from the majority.
const differsAdvice = "check the machine, remove the node from the cluster and join it again with an empty data folder (docs/operations.md, A node differs)"

func stateDiffers(index uint64, own, majority string) error {
	return fmt.Errorf("this node's state at index %d has the hash %s, a majority of the cluster has %s: its memory or disk is faulty, or this is a bug; %s",
		index, own, majority, differsAdvice)
}

func chainDiffers(index uint64, own, majority string) error {
	return fmt.Errorf("this node has applied something else than a majority of the cluster: up to log entry %d its chain is %s, theirs %s; "+
		"its log is damaged, or this is a bug; %s", index, own, majority, differsAdvice)
}
