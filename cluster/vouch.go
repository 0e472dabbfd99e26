package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
)

const (
	// vouchedFor is the time for which a member's answer about another node is valid, and
	// unvouchedFor the time for which no member is asked again after a negative one.
	vouchedFor   = 10 * time.Second
	unvouchedFor = time.Second
	// vouchTimeout bounds asking for it.
	vouchTimeout = time.Second
	// vouchesMax bounds the nodes asked about at the same time and remembered, and
	// vouchesPerHost those of them from one host, because a stranger may use any number of
	// names.
	vouchesMax     = 64
	vouchesPerHost = 8
)

// A node accepts Raft messages only from members. If it lags behind, its leader may have
// become a member since, and is not in its own configuration. So it asks the members that
// it knows, and accepts the messages if one with a more complete log has that node in its
// configuration, because only from such a member could it get what it lacks. If its own log
// is more complete than all of theirs, or no node that it knows is left in the cluster, it
// accepts nothing.

// vouchQuestion asks a member about another node. Log is the asker's.
type vouchQuestion struct {
	UUID string   `json:"uuid"`
	Log  logPoint `json:"log"`
}

// vouchAnswer is the member's answer.
type vouchAnswer struct {
	// Member: its log is more complete than the asker's, and its configuration has that
	// node.
	Member bool `json:"member,omitempty"`
}

// logPoint is the last entry of a log.
type logPoint struct {
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// after reports whether a log that ends at p is more up to date than one that ends at
// other, by the rule for Raft's votes. A log with a committed entry is, compared with one
// that lacks it.
func (p logPoint) after(other logPoint) bool {
	return p.Term > other.Term || p.Term == other.Term && p.Index > other.Index
}

// logEnd returns the end of this node's log.
func (n *Node) logEnd() logPoint {
	stats := n.raft.current().Stats()
	term, _ := strconv.ParseUint(stats["last_log_term"], 10, 64) // set by Raft
	index, _ := strconv.ParseUint(stats["last_log_index"], 10, 64)
	return logPoint{Term: term, Index: index}
}

// answerVouch says whether a node is a member that the asker cannot know of.
func (n *Node) answerVouch(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[vouchQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(vouchAnswer{Member: n.raft != nil && n.logEnd().after(q.Log) && n.isServer(q.UUID)})
}

// raftPeer returns an error if Raft messages are not accepted from a node that dialed from
// the host.
func (n *Node) raftPeer(ctx context.Context, from peer.Hello, host string) error {
	if n.isServer(from.UUID) || n.vouches.hold(ctx, from.UUID, host, n.askVouch) {
		return nil
	}
	return fmt.Errorf("%w, nor does a member that this node knows and that is further say so", peer.NotMember(from))
}

// askVouch asks the members that this node knows about another node, and reports whether
// one of them vouches for it.
func (n *Node) askVouch(ctx context.Context, uuid string) bool {
	ctx, cancel := context.WithTimeout(ctx, vouchTimeout)
	defer cancel()
	members := n.acquaintances()
	q := vouchQuestion{UUID: uuid, Log: n.logEnd()}
	var wg sync.WaitGroup
	yes := make(chan struct{}, len(members))
	for _, s := range members {
		if string(s.ID) == n.uuid || string(s.ID) == uuid {
			continue
		}
		wg.Go(func() {
			answer, err := ask[vouchAnswer](ctx, n, string(s.Address), callVouch, q)
			if err == nil && answer.Member {
				yes <- struct{}{}
				cancel() // one is enough
			}
		})
	}
	wg.Wait()
	return len(yes) > 0
}

// acquaintances returns the nodes that this one takes for members: those of Raft's
// configuration. Until that contains this node, its entries are older than the membership,
// and none of those members may be left; so the members at the time of joining come first.
func (n *Node) acquaintances() []raft.Server {
	servers := n.servers()
	if !n.belonged.Load() && slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == n.uuid }) {
		n.belonged.Store(true)
	}
	if n.belonged.Load() {
		return servers
	}
	return slices.Concat(n.introducers, servers)
}

// isServer reports whether this node takes another one for a member.
func (n *Node) isServer(uuid string) bool {
	return slices.ContainsFunc(n.acquaintances(), func(s raft.Server) bool { return string(s.ID) == uuid })
}

// vouches holds what members have said about nodes that this one does not know. The zero
// value is ready to use.
type vouches struct {
	mu    sync.Mutex
	words map[string]*vouchWord // by UUID, at most vouchesMax
}

// vouchWord is the answer about one node.
type vouchWord struct {
	host  string        // the host that it dialed from
	said  chan struct{} // closed once members were asked; what follows is set then
	holds bool
	until time.Time
}

// hold reports whether a member vouches for a node that dialed from the host: by a recent
// answer, or else by calling ask, which only one caller at a time does for a node.
func (v *vouches) hold(ctx context.Context, uuid, host string, ask func(context.Context, string) bool) bool {
	word, first := v.word(uuid, host)
	if word == nil {
		return false
	}
	if first {
		word.holds = ask(ctx, uuid)
		word.until = time.Now().Add(unvouchedFor)
		if word.holds {
			word.until = time.Now().Add(vouchedFor)
		}
		close(word.said)
	}
	select {
	case <-word.said:
		return word.holds
	case <-ctx.Done():
		return false
	}
}

// word returns the answer about a node; first is true if the caller has to ask. nil if
// there are vouchesMax valid or pending answers about others, or vouchesPerHost from the
// host.
func (v *vouches) word(uuid, host string) (w *vouchWord, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ofHost := 0
	for of, w := range v.words {
		switch {
		case w.over():
			delete(v.words, of)
		case w.host == host:
			ofHost++
		}
	}
	if w := v.words[uuid]; w != nil {
		return w, false
	}
	if len(v.words) >= vouchesMax || ofHost >= vouchesPerHost {
		return nil, false
	}
	if v.words == nil {
		v.words = make(map[string]*vouchWord)
	}
	w = &vouchWord{host: host, said: make(chan struct{})}
	v.words[uuid] = w
	return w, true
}

// over reports whether an answer is no longer valid.
func (w *vouchWord) over() bool {
	select {
	case <-w.said:
		return !time.Now().Before(w.until)
	default:
		return false
	}
}

// introduced records the members at the time when this node became one. It must be called
// before the node runs.
func (n *Node) introduced(members []storage.Introducer) {
	n.introducers = nil
	for _, m := range members {
		n.introducers = append(n.introducers, raft.Server{ID: raft.ServerID(m.UUID), Address: raft.ServerAddress(m.PeerAddr)})
	}
}

// introducing returns the members for a joining node: this node first, because the joining
// node has reached it.
func (n *Node) introducing() []storage.Introducer {
	members := []storage.Introducer{{UUID: n.uuid, PeerAddr: n.record.PeerAddr}}
	for _, s := range n.servers() {
		if string(s.ID) != n.uuid {
			members = append(members, storage.Introducer{UUID: string(s.ID), PeerAddr: string(s.Address)})
		}
	}
	return members
}

// memberAt returns the UUID of the member at a peer address, or "": by Raft's
// configuration, by the records, or by reported addresses.
func (n *Node) memberAt(addr string) (uuid string) {
	for _, s := range n.acquaintances() {
		if string(s.Address) == addr {
			return string(s.ID)
		}
	}
	n.fsm.Read(func(m *fsm.Machine) {
		for _, r := range m.Nodes() {
			if r.PeerAddr == addr {
				uuid = r.UUID
			}
		}
	})
	if uuid == "" && n.peers != nil {
		uuid = n.peers.Whereabouts().At(addr)
	}
	return uuid
}

// recordedOf returns the name and peer address under which the cluster knows a node, "" if
// not recorded.
func (n *Node) recordedOf(uuid string) (nodeID, peerAddr string) {
	n.fsm.Read(func(m *fsm.Machine) {
		if r, ok := m.Node(uuid); ok {
			nodeID, peerAddr = r.NodeID, r.PeerAddr
		}
	})
	for _, s := range n.servers() {
		if string(s.ID) == uuid {
			peerAddr = string(s.Address)
		}
	}
	return nodeID, peerAddr
}
