package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
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

// callNudge is the call by which a node makes another one check its standing: → {}.
const callNudge = "nudge"

// standing finds out whether this node is still a member, at the address that the cluster has
// recorded. Raft sends nothing to a node that was removed or has moved, so the node asks a leader;
// the leader's answer is here, too.
type standing struct {
	*knownMembers
	membership *membership
	reads      *reads
	nudged     chan struct{} // capacity 1: check whether this node is a member
}

func newStanding(known *knownMembers, mb *membership, rd *reads) *standing {
	return &standing{knownMembers: known, membership: mb, reads: rd, nudged: make(chan struct{}, 1)}
}

// standingQuestion asks a leader about a node, which states its identity and current
// address.
type standingQuestion struct {
	Record fsm.NodeRecord `json:"record"`
}

// standingAnswer is the leader's answer. In the answer of other nodes both are false.
type standingAnswer struct {
	Member  bool `json:"member,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// monitor asks about this node's standing while it is in doubt, until ctx ends or this node was
// removed.
func (sd *standing) monitor(ctx context.Context) {
	ticker := time.NewTicker(sd.cfg.interval(standingInterval))
	defer ticker.Stop()
	asked := time.Duration(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-sd.nudged:
			asked = -1
		case <-ticker.C:
		}
		now := sd.clock.Mono()
		if !sd.inDoubt() || asked >= 0 && now-asked < sd.cfg.interval(standingAskInterval) {
			continue
		}
		asked = now
		if sd.askStanding(ctx).Removed {
			sd.leaveForGood()
			return
		}
	}
}

// inDoubt reports whether this node has to ask a leader about itself.
func (sd *standing) inDoubt() bool {
	servers := sd.servers()
	if len(servers) == 0 || sd.leader.Load() != nil {
		return false // it waits to be contacted, or leads
	}
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == sd.uuid })
	if i < 0 || string(servers[i].Address) != sd.record.PeerAddr {
		return true
	}
	ms := sd.lastContactMS()
	return ms < 0 || ms > silenceMax.Milliseconds()
}

// askStanding asks the other members that this node knows, one after the other, until the leader
// answers.
func (sd *standing) askStanding(ctx context.Context) standingAnswer {
	sd.findMembers(ctx)
	for _, addr := range sd.knownAddrs() {
		ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
		answer, err := ask[standingAnswer](ctx, sd.core, addr, peer.CallStanding, standingQuestion{Record: sd.record})
		cancel()
		if err == nil && (answer.Member || answer.Removed) {
			return answer
		}
	}
	return standingAnswer{}
}

// findMembers asks the nodes at the addresses that this node was started with, unless a
// member is known there. This tells it where members are.
func (sd *standing) findMembers(ctx context.Context) {
	if sd.peers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, addr := range sd.startAddrs() {
		if sd.memberAt(addr) == "" {
			wg.Go(func() { _, _ = sd.whoAt(ctx, addr) }) // the port records the answering node
		}
	}
	wg.Wait()
}

// startAddrs returns the peer addresses of other nodes from this node's configuration.
func (sd *standing) startAddrs() []string {
	addrs := slices.Clone(sd.cfg.Join)
	for _, nodeID := range slices.Sorted(maps.Keys(sd.cfg.InitialCluster)) {
		if nodeID != sd.cfg.NodeID {
			addrs = append(addrs, sd.cfg.InitialCluster[nodeID])
		}
	}
	return addrs
}

// knownAddrs returns the peer addresses of other members: from the configuration, from the
// records, and as reported by themselves.
func (sd *standing) knownAddrs() []string {
	var addrs []string
	add := func(addr string) {
		if addr != "" && addr != sd.record.PeerAddr && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	for _, s := range sd.members() {
		if string(s.ID) != sd.uuid {
			add(string(s.Address))
		}
	}
	sd.fsm.Read(func(m *fsm.Machine) {
		for _, r := range m.Nodes() {
			if r.UUID != sd.uuid {
				add(r.PeerAddr)
			}
		}
	})
	if sd.peers != nil {
		others := sd.peers.Whereabouts().All()
		for _, uuid := range slices.Sorted(maps.Keys(others)) {
			if uuid != sd.uuid {
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
func (sd *standing) answerStanding(ctx context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[standingQuestion](body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, standingAskTimeout)
	defer cancel()
	l := sd.leader.Load()
	if sd.raft == nil || l == nil || !l.serves() || sd.closing.Load() {
		return json.Marshal(standingAnswer{})
	}
	removed := !slices.ContainsFunc(sd.servers(), q.isAbout)
	if err := sd.reads.confirmHistory(ctx, l); err != nil {
		return json.Marshal(standingAnswer{})
	}
	if removed {
		return json.Marshal(standingAnswer{Removed: true})
	}
	return json.Marshal(standingAnswer{Member: sd.noteMoved(ctx, &q)})
}

func (q *standingQuestion) isAbout(s raft.Server) bool { return string(s.ID) == q.Record.UUID }

// noteMoved updates the address of the node that asks, and reports whether it is still a member.
func (sd *standing) noteMoved(ctx context.Context, q *standingQuestion) bool {
	l, unlock, err := sd.membership.lockLeading(ctx)
	if err != nil {
		return false
	}
	defer unlock()
	servers := sd.servers()
	i := slices.IndexFunc(servers, q.isAbout)
	if i >= 0 {
		sd.moveLocked(ctx, l, servers[i], q.Record.PeerAddr)
	}
	return i >= 0
}

// leaveForGood ends this node's work as a member. It keeps running so that it can report
// this, but serves nothing.
func (sd *standing) leaveForGood() {
	if !sd.removed.CompareAndSwap(false, true) {
		return
	}
	close(sd.left)
	if err := sd.raft.run.Load().shutdown(); err != nil {
		sd.logger.Error("raft did not stop", "error", err)
	}
	sd.logger.Error("this node was removed from the cluster and serves nothing any more. "+
		"Its data can never come back under this identity; to use the machine again, move the data folder away and start it with --join, as a new node",
		"data_dir", sd.cfg.DataDir)
}

// answerNudge makes this node ask about itself at the next check.
func (sd *standing) answerNudge(context.Context, []byte) ([]byte, error) {
	select {
	case sd.nudged <- struct{}{}:
	default:
	}
	return []byte("{}"), nil
}

// whoAt returns the node that answers at a peer address.
func (sd *standing) whoAt(ctx context.Context, addr string) (fsm.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, moveAskTimeout)
	defer cancel()
	who, err := sd.askWhoIsAt(ctx, addr)
	return who.Record, err
}

// staysAt reports whether the node of that identity answers at a peer address as its own.
func (sd *standing) staysAt(ctx context.Context, uuid, addr string) bool {
	who, err := sd.whoAt(ctx, addr)
	return err == nil && who.UUID == uuid && who.PeerAddr == addr
}

// other returns the address where another process answers as this node, which is the one in
// the configuration, or "".
func (sd *standing) other(ctx context.Context) (addr string) {
	for _, s := range sd.servers() {
		if at := string(s.Address); string(s.ID) == sd.uuid && at != sd.record.PeerAddr && sd.staysAt(ctx, sd.uuid, at) {
			return at
		}
	}
	return ""
}

// moveLocked changes a member's address in the configuration, after the node of that
// identity has answered there and none stays at the previous one. The caller has locked the
// membership.
func (sd *standing) moveLocked(ctx context.Context, l *leadership, s raft.Server, addr string) {
	if addr == "" || addr == string(s.Address) || l.ctx.Err() != nil {
		return
	}
	if string(s.ID) == sd.uuid && addr != sd.record.PeerAddr {
		return // the claim of a copy
	}
	if string(s.ID) != sd.uuid {
		if who, err := sd.whoAt(ctx, addr); err != nil || who.UUID != string(s.ID) {
			return
		}
		if sd.staysAt(ctx, string(s.ID), string(s.Address)) {
			sd.logger.Error("two nodes run with the identity of one member: the data folder of one is a copy of the other's. "+
				"Stop the one that is not at the member's address; to use it, start it with an empty data folder",
				"node_id", sd.nameOfMember(string(s.ID)), "uuid", s.ID, "peer_addr", s.Address, "copy_peer_addr", addr)
			return
		}
	}
	add := sd.raft.AddVoter
	if s.Suffrage != raft.Voter {
		add = sd.raft.AddNonvoter
	}
	err := sd.membership.change(ctx, func() raft.IndexFuture { return add(s.ID, raft.ServerAddress(addr), 0, changeQueueMax) })
	if err != nil {
		sd.logger.Warn("a node's new peer address was not noted, trying again", "uuid", s.ID, "peer_addr", addr, "error", err)
		return
	}
	sd.logger.Info("a node has another peer address", "node_id", sd.nameOfMember(string(s.ID)), "uuid", s.ID, "before", s.Address, "peer_addr", addr)
}

// move updates a member's peer address.
func (sd *standing) move(l *leadership, s raft.Server, addr string) {
	if addr == "" || addr == string(s.Address) {
		return
	}
	unlock, err := sd.membership.lockMembers(l.ctx)
	if err != nil {
		return
	}
	defer unlock()
	if slices.Contains(sd.servers(), s) {
		sd.moveLocked(l.ctx, l, s, addr)
	}
}
