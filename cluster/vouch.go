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
	// vouchedFor is for how long a member's word about another node holds, and
	// unvouchedFor for how long nobody is asked again when no such word came.
	vouchedFor   = 10 * time.Second
	unvouchedFor = time.Second
	// vouchTimeout bounds asking for it.
	vouchTimeout = time.Second
	// vouchesMax bounds the nodes about which is asked at once, and those that are
	// remembered, and vouchesPerHost those of them that dialed from one host: a stranger
	// may have as many names as it likes.
	vouchesMax     = 64
	vouchesPerHost = 8
)

// A node takes Raft's messages from members alone. It may lag behind, and have a leader
// that was made a member since: then its own configuration does not have it. So it asks
// the members that it knows, and takes the messages if one whose log is further than
// its own has that node in its configuration: what it lacks it can have from such a
// member only. If it knows better than all of them, or nobody that it knows is left in
// the cluster, it takes nothing.

// vouchQuestion asks a member about another node. The log is that of who asks.
type vouchQuestion struct {
	UUID string   `json:"uuid"`
	Log  logPoint `json:"log"`
}

// vouchAnswer is the member's word.
type vouchAnswer struct {
	// Member: its log is further than that of who asks, and its configuration has
	// that node.
	Member bool `json:"member,omitempty"`
}

// logPoint is the last entry of a log.
type logPoint struct {
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// after reports whether a log that ends at p is more up to date than one that ends at
// other, as Raft's votes are granted by: one that has a committed entry is, beside one
// that lacks it.
func (p logPoint) after(other logPoint) bool {
	return p.Term > other.Term || p.Term == other.Term && p.Index > other.Index
}

// logEnd returns the end of this node's log.
func (n *Node) logEnd() logPoint {
	stats := n.raft.current().Stats()
	term, _ := strconv.ParseUint(stats["last_log_term"], 10, 64) // Raft's own
	index, _ := strconv.ParseUint(stats["last_log_index"], 10, 64)
	return logPoint{Term: term, Index: index}
}

// answerVouch says whether a node is a member that who asks cannot know of.
func (n *Node) answerVouch(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[vouchQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(vouchAnswer{Member: n.raft != nil && n.logEnd().after(q.Log) && n.isServer(q.UUID)})
}

// raftPeer says why Raft's messages are not taken from a node that dialed from the host,
// nil if they are.
func (n *Node) raftPeer(ctx context.Context, from peer.Hello, host string) error {
	if n.isServer(from.UUID) || n.vouches.hold(ctx, from.UUID, host, n.askVouch) {
		return nil
	}
	return fmt.Errorf("%w, nor does a member that this node knows and that is further say so", peer.NotMember(from))
}

// askVouch asks the members that this node knows about another node, and returns
// whether one of them vouches for it.
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

// acquaintances returns whom this node takes for members: those of Raft's configuration.
// Until that has this node, all that it has is older than its membership, and there may
// be nobody left of the members of then: so those come first that were members when it
// became one.
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

// vouches holds what members said about nodes that this one does not know. The zero
// value is ready.
type vouches struct {
	mu    sync.Mutex
	words map[string]*vouchWord // by UUID, vouchesMax at most
}

// vouchWord is about one node.
type vouchWord struct {
	host  string        // that it dialed from
	said  chan struct{} // closed once it has been asked about; what follows is set then
	holds bool
	until time.Time
}

// hold reports whether a member vouches for a node that dialed from the host: by a word
// that is fresh, or else ask, which one caller at a time calls for one node.
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

// word returns the word about a node; first is true if it is for the caller to ask. nil
// if there are vouchesMax others that hold, or are being asked about, or vouchesPerHost
// from the host.
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

// over reports whether a word that was said holds no longer.
func (w *vouchWord) over() bool {
	select {
	case <-w.said:
		return !time.Now().Before(w.until)
	default:
		return false
	}
}

// introduced notes who the members were when this node became one. Before it runs.
func (n *Node) introduced(members []storage.Introducer) {
	n.introducers = nil
	for _, m := range members {
		n.introducers = append(n.introducers, raft.Server{ID: raft.ServerID(m.UUID), Address: raft.ServerAddress(m.PeerAddr)})
	}
}

// introducing returns the members, for a node that becomes one: this node first, which
// it has met.
func (n *Node) introducing() []storage.Introducer {
	members := []storage.Introducer{{UUID: n.uuid, PeerAddr: n.record.PeerAddr}}
	for _, s := range n.servers() {
		if string(s.ID) != n.uuid {
			members = append(members, storage.Introducer{UUID: string(s.ID), PeerAddr: string(s.Address)})
		}
	}
	return members
}

// memberAt returns the UUID of the member at a peer address, "" if this node knows of
// none there: by Raft's configuration, by the records, by where they said that they are.
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

// recordedOf returns by which name and peer address the cluster knows a node, "" for
// what it has not recorded.
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
