package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// standingInterval is the interval at which a node checks whether it may have been
	// removed or has moved; standingAskInterval the one at which it asks others about that.
	standingInterval    = time.Second
	standingAskInterval = 5 * time.Second
	standingAskTimeout  = 2 * time.Second
	// silenceMax is the time without a word from a leader after which a node asks whether
	// it is still a member.
	silenceMax = 3 * time.Second
	// moveAskTimeout bounds asking the node at an address. Within standingAskTimeout, two
	// are asked and the change is made.
	moveAskTimeout = 500 * time.Millisecond
)

// standingQuestion asks a leader about a node, which states its identity and current
// address.
type standingQuestion struct {
	Record fsm.NodeRecord `json:"record"`
}

// commitPollInterval is the interval between checks whether entries have been committed.
const commitPollInterval = 5 * time.Millisecond

// standingAnswer is the leader's answer. Other nodes answer with neither.
type standingAnswer struct {
	Member  bool `json:"member,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// monitorStanding detects that this node was removed from the cluster, or that its peer
// address differs from the cluster's. Raft reports neither: it sends nothing to a node that
// was removed or has moved.
func (n *Node) monitorStanding(ctx context.Context) {
	ticker := time.NewTicker(standingInterval)
	defer ticker.Stop()
	asked := time.Duration(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.nudged:
			asked = -1
		case <-ticker.C:
		}
		now := n.clock.Mono()
		if !n.inDoubt() || asked >= 0 && now-asked < standingAskInterval {
			continue
		}
		asked = now
		if n.askStanding(ctx).Removed {
			n.leaveForGood()
			return
		}
	}
}

// inDoubt reports whether this node has to ask a leader about itself.
func (n *Node) inDoubt() bool {
	servers := n.servers()
	if len(servers) == 0 || n.leader.Load() != nil {
		return false // it waits to be contacted, or leads
	}
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == n.uuid })
	if i < 0 || string(servers[i].Address) != n.record.PeerAddr {
		return true
	}
	ms := n.lastContactMS()
	return ms < 0 || ms > silenceMax.Milliseconds()
}

// askStanding asks all other members that this node knows, until one has an answer.
func (n *Node) askStanding(ctx context.Context) standingAnswer {
	n.findMembers(ctx)
	for _, addr := range n.knownAddrs() {
		ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
		answer, err := ask[standingAnswer](ctx, n, addr, peer.CallStanding, standingQuestion{Record: n.record})
		cancel()
		if err == nil && (answer.Member || answer.Removed) {
			return answer
		}
	}
	return standingAnswer{}
}

// findMembers asks the nodes at the addresses that this node was started with, unless a
// member is known there. This tells it where members are.
func (n *Node) findMembers(ctx context.Context) {
	if n.peers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, addr := range n.startAddrs() {
		if n.memberAt(addr) == "" {
			wg.Go(func() { _, _ = n.whoAt(ctx, addr) }) // the port records the answering node
		}
	}
	wg.Wait()
}

// startAddrs returns the peer addresses of other nodes from this node's configuration.
func (n *Node) startAddrs() []string {
	addrs := slices.Clone(n.cfg.Join)
	for _, nodeID := range slices.Sorted(maps.Keys(n.cfg.InitialCluster)) {
		if nodeID != n.cfg.NodeID {
			addrs = append(addrs, n.cfg.InitialCluster[nodeID])
		}
	}
	return addrs
}

// knownAddrs returns the peer addresses of other members: from the configuration, from the
// records, and as reported by themselves.
func (n *Node) knownAddrs() []string {
	var addrs []string
	add := func(addr string) {
		if addr != "" && addr != n.record.PeerAddr && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	for _, s := range n.acquaintances() {
		if string(s.ID) != n.uuid {
			add(string(s.Address))
		}
	}
	n.fsm.Read(func(m *fsm.Machine) {
		for _, r := range m.Nodes() {
			if r.UUID != n.uuid {
				add(r.PeerAddr)
			}
		}
	})
	if n.peers != nil {
		others := n.peers.Whereabouts().All()
		for _, uuid := range slices.Sorted(maps.Keys(others)) {
			if uuid != n.uuid {
				add(others[uuid])
			}
		}
	}
	return addrs
}

// aboutItself returns an error if a question about a node's standing is not from that node
// itself, with the address in its hello.
func aboutItself(from peer.Hello, body []byte) error {
	q, err := peer.ReadQuestion[standingQuestion](body)
	if err != nil {
		return err
	}
	if q.Record.UUID != from.UUID || q.Record.PeerAddr != from.PeerAddr {
		return peer.QuestionError("the question is not about the node that asks")
	}
	return nil
}

// answerStanding says, if this node certainly leads, whether a node is a member, and
// updates its address. For other nodes it writes and locks nothing, because any process
// with the join key may ask.
func (n *Node) answerStanding(ctx context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[standingQuestion](body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
	defer cancel()
	l := n.leader.Load()
	if n.raft == nil || l == nil || !l.serves() || n.closing.Load() {
		return json.Marshal(standingAnswer{})
	}
	removed := !slices.ContainsFunc(n.servers(), q.isAbout)
	if err := l.confirmHistory(ctx); err != nil {
		return json.Marshal(standingAnswer{})
	}
	if removed {
		return json.Marshal(standingAnswer{Removed: true})
	}
	return json.Marshal(standingAnswer{Member: n.noteMoved(ctx, &q)})
}

func (q *standingQuestion) isAbout(s raft.Server) bool { return string(s.ID) == q.Record.UUID }

// noteMoved updates a member's address, and reports whether it is still a member.
func (n *Node) noteMoved(ctx context.Context, q *standingQuestion) bool {
	l, unlock, err := n.lockLeading(ctx)
	if err != nil {
		return false
	}
	defer unlock()
	servers := n.servers()
	i := slices.IndexFunc(servers, q.isAbout)
	if i >= 0 {
		l.moveLocked(ctx, servers[i], q.Record.PeerAddr)
	}
	return i >= 0
}

// confirmHistory waits until everything that was in this node's log at the call, as a
// leader in l's term, is committed. Otherwise the latest configuration might not last: a
// change may continue after its caller gave up, and the next leader may not know it.
// Errors: ctx's cause, those of confirmRead.
func (l *leadership) confirmHistory(ctx context.Context) error {
	n := l.node
	for end := n.lastIndex(); n.raft.CommitIndex() < end; {
		if !pause.For(ctx, commitPollInterval) {
			return context.Cause(ctx)
		}
	}
	// Check that it still leads in the term, or what was in the log at the call may be
	// gone.
	return n.confirmRead(ctx, l, 0)
}

// leaveForGood ends this node's work as a member. It keeps running so that it can report
// this, but serves nothing.
func (n *Node) leaveForGood() {
	n.removed.Store(true)
	if err := n.raft.run.Load().shutdown(); err != nil {
		n.logger.Error("raft did not stop", "error", err)
	}
	n.logger.Error("this node was removed from the cluster and serves nothing any more: stop it. "+
		"Its data can never come back under this identity; to use the machine again, move the data folder away and start it with --join, as a new node",
		"data_dir", n.cfg.DataDir)
}

// errRemoved is the error of a node that was removed and serves nothing.
func errRemoved() error {
	return fmt.Errorf("%w: this node was removed from the cluster", nodes.ErrNoLeader)
}

// tellRemoved makes a removed node check at once whether it was removed. If it cannot be
// reached it finds out by itself.
func (n *Node) tellRemoved(member nodes.NodeView) {
	if member.UUID == n.uuid {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, statusTimeout)
	defer cancel()
	_, _ = ask[struct{}](ctx, n, member.PeerAddr, callNudge, struct{}{})
}

// answerNudge makes this node ask about itself at the next check.
func (n *Node) answerNudge(context.Context, []byte) ([]byte, error) {
	select {
	case n.nudged <- struct{}{}:
	default:
	}
	return []byte("{}"), nil
}

// whoAt returns the node that answers at a peer address.
func (n *Node) whoAt(ctx context.Context, addr string) (fsm.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, moveAskTimeout)
	defer cancel()
	who, err := n.askWhoIsAt(ctx, addr)
	return who.Record, err
}

// staysAt reports whether the node of that identity answers at a peer address as its own.
func (n *Node) staysAt(ctx context.Context, uuid, addr string) bool {
	who, err := n.whoAt(ctx, addr)
	return err == nil && who.UUID == uuid && who.PeerAddr == addr
}

// other returns the address where another process answers as this node, which is the one in
// the configuration, or "".
func (n *Node) other(ctx context.Context) (addr string) {
	for _, s := range n.servers() {
		if at := string(s.Address); string(s.ID) == n.uuid && at != n.record.PeerAddr && n.staysAt(ctx, n.uuid, at) {
			return at
		}
	}
	return ""
}

// moveLocked changes a member's address in the configuration, after the node of that
// identity has answered there and none stays at the previous one. The caller has locked the
// membership.
func (l *leadership) moveLocked(ctx context.Context, s raft.Server, addr string) {
	n := l.node
	if addr == "" || addr == string(s.Address) || l.ctx.Err() != nil {
		return
	}
	if string(s.ID) == n.uuid && addr != n.record.PeerAddr {
		return // the claim of a copy
	}
	if string(s.ID) != n.uuid {
		if who, err := n.whoAt(ctx, addr); err != nil || who.UUID != string(s.ID) {
			return
		}
		if n.staysAt(ctx, string(s.ID), string(s.Address)) {
			n.logger.Error("two nodes run with the identity of one member: the data folder of one is a copy of the other's. "+
				"Stop the one that is not at the member's address; to use it, start it with an empty data folder",
				"node_id", n.nameOfMember(string(s.ID)), "uuid", s.ID, "peer_addr", s.Address, "copy_peer_addr", addr)
			return
		}
	}
	add := n.raft.AddVoter
	if s.Suffrage != raft.Voter {
		add = n.raft.AddNonvoter
	}
	err := n.change(ctx, func() raft.IndexFuture { return add(s.ID, raft.ServerAddress(addr), 0, changeQueueMax) })
	if err != nil {
		n.logger.Warn("a node's new peer address was not noted, trying again", "uuid", s.ID, "peer_addr", addr, "error", err)
		return
	}
	n.logger.Info("a node has another peer address", "node_id", n.nameOfMember(string(s.ID)), "uuid", s.ID, "before", s.Address, "peer_addr", addr)
}
