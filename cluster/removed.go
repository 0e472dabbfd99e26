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
	// standingInterval is how often a node looks whether it may have been removed,
	// or has moved; standingAskInterval how often it asks others about it.
	standingInterval    = time.Second
	standingAskInterval = 5 * time.Second
	standingAskTimeout  = 2 * time.Second
	// silenceMax is for how long a node hears nothing from a leader before it asks
	// whether it is still a member.
	silenceMax = 3 * time.Second
	// moveAskTimeout bounds the question who is at an address; two are asked, and
	// the change has to be made, in the time of standingAskTimeout.
	moveAskTimeout = 500 * time.Millisecond
)

// standingQuestion asks a leader what it makes of a node, which says who it is
// and by which address it is reached now.
type standingQuestion struct {
	Record fsm.NodeRecord `json:"record"`
}

// commitPollInterval is how often it is looked whether entries have been committed.
const commitPollInterval = 5 * time.Millisecond

// standingAnswer is the leader's word. Others say nothing.
type standingAnswer struct {
	Member  bool `json:"member,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// monitorStanding notices that this node was removed from the cluster, or that
// its peer address is another one than the cluster has. It hears of neither by
// Raft: whoever is removed is sent nothing any more, nor is who has moved.
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

// inDoubt reports whether a leader has to be asked about this node.
func (n *Node) inDoubt() bool {
	servers := n.servers()
	if len(servers) == 0 || n.leader.Load() != nil {
		return false // it waits to be contacted; or it knows
	}
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == n.uuid })
	if i < 0 || string(servers[i].Address) != n.record.PeerAddr {
		return true
	}
	ms := n.lastContactMS()
	return ms < 0 || ms > silenceMax.Milliseconds()
}

// askStanding asks all other members that this node knows of, until one knows.
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

// findMembers looks who is at the addresses that this node was started with, if it
// knows of no member there: then it knows where that one is, if it is one.
func (n *Node) findMembers(ctx context.Context) {
	if n.peers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, addr := range n.startAddrs() {
		if n.memberAt(addr) == "" {
			wg.Go(func() { _, _ = n.whoAt(ctx, addr) }) // the port notes who it was
		}
	}
	wg.Wait()
}

// startAddrs returns the peer addresses of others that this node was started with.
func (n *Node) startAddrs() []string {
	addrs := slices.Clone(n.cfg.Join)
	for _, nodeID := range slices.Sorted(maps.Keys(n.cfg.InitialCluster)) {
		if nodeID != n.cfg.NodeID {
			addrs = append(addrs, n.cfg.InitialCluster[nodeID])
		}
	}
	return addrs
}

// knownAddrs returns the peer addresses of other members: those of the
// configuration, of the records, and by which they said that they are reached.
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

// aboutItself says why a question about a node's standing is not answered: unless it
// is the node itself, by the address that its hello has.
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

// answerStanding says, if this node leads for certain, whether a node is a
// member, and notes its address. It writes nothing and locks nothing for who is none:
// whoever has the join key may ask.
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

// noteMoved notes where a member is, and reports whether it is one still.
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

// confirmHistory waits until all that this node's log had at the call, as a leader
// in l's term, is committed. The latest configuration need not be without it: nobody
// waits any more for a change whose caller gave up, and the next leader may know nothing
// of it. Errors: ctx's cause, those of confirmRead.
func (l *leadership) confirmHistory(ctx context.Context) error {
	n := l.node
	for end := n.lastIndex(); n.raft.CommitIndex() < end; {
		if !pause.For(ctx, commitPollInterval) {
			return context.Cause(ctx)
		}
	}
	// That it leads still in the term: else what was there at the call may be gone.
	return n.confirmRead(ctx, l, 0)
}

// leaveForGood ends what this node does as a member. It goes on running, so that
// it can tell, but serves nothing.
func (n *Node) leaveForGood() {
	n.removed.Store(true)
	if err := n.raft.run.Load().shutdown(); err != nil {
		n.logger.Error("raft did not stop", "error", err)
	}
	n.logger.Error("this node was removed from the cluster and serves nothing any more: stop it. "+
		"Its data can never come back under this identity; to use the machine again, move the data folder away and start it with --join, as a new node",
		"data_dir", n.cfg.DataDir)
}

// errRemoved is why a node that was removed serves nothing.
func errRemoved() error {
	return fmt.Errorf("%w: this node was removed from the cluster", nodes.ErrNoLeader)
}

// tellRemoved has a node that was removed look at once whether it was. If it
// does not answer it finds out by itself.
func (n *Node) tellRemoved(member nodes.NodeView) {
	if member.UUID == n.uuid {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, statusTimeout)
	defer cancel()
	_, _ = ask[struct{}](ctx, n, member.PeerAddr, callNudge, struct{}{})
}

// answerNudge has this node ask about itself at the next look.
func (n *Node) answerNudge(context.Context, []byte) ([]byte, error) {
	select {
	case n.nudged <- struct{}{}:
	default:
	}
	return []byte("{}"), nil
}

// whoAt returns who answers at a peer address.
func (n *Node) whoAt(ctx context.Context, addr string) (fsm.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, moveAskTimeout)
	defer cancel()
	who, err := n.askWhoIsAt(ctx, addr)
	return who.Record, err
}

// staysAt reports whether the node of that identity answers at a peer address, as its own.
func (n *Node) staysAt(ctx context.Context, uuid, addr string) bool {
	who, err := n.whoAt(ctx, addr)
	return err == nil && who.UUID == uuid && who.PeerAddr == addr
}

// other returns where another process answers as this node, at the address that the
// configuration has for it, "" for nowhere.
func (n *Node) other(ctx context.Context) (addr string) {
	for _, s := range n.servers() {
		if at := string(s.Address); string(s.ID) == n.uuid && at != n.record.PeerAddr && n.staysAt(ctx, n.uuid, at) {
			return at
		}
	}
	return ""
}

// moveLocked gives a member another address in the configuration, once the node
// of that identity answers there, and none that stays at the one before. The
// caller has locked the membership.
func (l *leadership) moveLocked(ctx context.Context, s raft.Server, addr string) {
	n := l.node
	if addr == "" || addr == string(s.Address) || l.ctx.Err() != nil {
		return
	}
	if string(s.ID) == n.uuid && addr != n.record.PeerAddr {
		return // the word of a copy
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
