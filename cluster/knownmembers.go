package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	// vouchTimeout bounds asking the members.
	vouchTimeout = time.Second
	// vouchesMax bounds the answers that are remembered or awaited, and vouchesPerHost those
	// about nodes that dialed from one host, because a stranger may use any number of names.
	vouchesMax     = 64
	vouchesPerHost = 8
)

// callVouch is the call by which a node asks a member about another node: vouchQuestion → vouchAnswer.
const callVouch = "vouch"

// knownMembers knows which nodes are members: by this node's log, by the node that admitted it, or
// because a member vouches for them.
type knownMembers struct {
	*role
	// introducers are the members as reported by the node that admitted this one; see members.
	// Set before Raft runs.
	introducers []raft.Server
	belonged    atomic.Bool // this node has been in its own configuration since it started
	vouches     vouches
}

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
func (km *knownMembers) logEnd() logPoint {
	stats := km.raft.current().Stats()
	term, _ := strconv.ParseUint(stats["last_log_term"], 10, 64) // set by Raft
	index, _ := strconv.ParseUint(stats["last_log_index"], 10, 64)
	return logPoint{Term: term, Index: index}
}

// answerVouch says whether a node is a member that the asker cannot know of.
func (km *knownMembers) answerVouch(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[vouchQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(vouchAnswer{Member: km.raft != nil && km.logEnd().after(q.Log) && km.isServer(q.UUID)})
}

// raftPeer returns an error if Raft messages are not accepted from a node that dialed from
// the host.
func (km *knownMembers) raftPeer(ctx context.Context, from peer.Hello, host string) error {
	if km.isServer(from.UUID) || km.vouches.confirm(ctx, from.UUID, host, km.askVouch) {
		return nil
	}
	return fmt.Errorf("%w, nor does a member that this node knows and that is further say so", peer.NotMember(from))
}

// askVouch asks the members that this node knows about another node, and reports whether
// one of them vouches for it.
func (km *knownMembers) askVouch(ctx context.Context, uuid string) bool {
	ctx, cancel := context.WithTimeout(ctx, vouchTimeout)
	defer cancel()
	members := km.members()
	q := vouchQuestion{UUID: uuid, Log: km.logEnd()}
	var wg sync.WaitGroup
	yes := make(chan struct{}, len(members))
	for _, s := range members {
		if string(s.ID) == km.uuid || string(s.ID) == uuid {
			continue
		}
		wg.Go(func() {
			answer, err := ask[vouchAnswer](ctx, km.core, string(s.Address), callVouch, q)
			if err == nil && answer.Member {
				yes <- struct{}{}
				cancel() // one is enough
			}
		})
	}
	wg.Wait()
	return len(yes) > 0
}

// members returns the nodes that this one takes for members: those of Raft's
// configuration. Until that contains this node, its entries are older than the membership,
// and none of those members may be left; so the members at the time of joining come first.
func (km *knownMembers) members() []raft.Server {
	servers := km.servers()
	if !km.belonged.Load() && slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == km.uuid }) {
		km.belonged.Store(true)
	}
	if km.belonged.Load() {
		return servers
	}
	return slices.Concat(km.introducers, servers)
}

// isServer reports whether this node takes another one for a member.
func (km *knownMembers) isServer(uuid string) bool {
	return slices.ContainsFunc(km.members(), func(s raft.Server) bool { return string(s.ID) == uuid })
}

// vouches holds what members have said about nodes that this one does not know. The zero
// value is ready to use.
type vouches struct {
	mu     sync.Mutex
	byUUID map[string]*vouch // at most vouchesMax
}

// vouch is the members' answer about one node.
type vouch struct {
	host string        // that the node dialed from
	done chan struct{} // closed once the members were asked; what follows is set then

	member bool      // a member vouches for the node
	until  time.Time // the end of the answer's validity
}

// confirm reports whether a member vouches for a node that dialed from the host: by a recent
// answer, or else by calling ask, which only one caller at a time does for a node.
func (v *vouches) confirm(ctx context.Context, uuid, host string, ask func(context.Context, string) bool) bool {
	w, first := v.entry(uuid, host)
	if w == nil {
		return false
	}
	if first {
		w.member = ask(ctx, uuid)
		w.until = time.Now().Add(unvouchedFor)
		if w.member {
			w.until = time.Now().Add(vouchedFor)
		}
		close(w.done)
	}
	select {
	case <-w.done:
		return w.member
	case <-ctx.Done():
		return false
	}
}

// entry returns the answer about a node; first is true if the caller has to ask for it. It
// returns nil if there are vouchesMax valid or pending answers about others, or vouchesPerHost
// about nodes that dialed from the host.
func (v *vouches) entry(uuid, host string) (w *vouch, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ofHost := 0
	for of, w := range v.byUUID {
		switch {
		case w.over():
			delete(v.byUUID, of)
		case w.host == host:
			ofHost++
		}
	}
	if w := v.byUUID[uuid]; w != nil {
		return w, false
	}
	if len(v.byUUID) >= vouchesMax || ofHost >= vouchesPerHost {
		return nil, false
	}
	if v.byUUID == nil {
		v.byUUID = make(map[string]*vouch)
	}
	w = &vouch{host: host, done: make(chan struct{})}
	v.byUUID[uuid] = w
	return w, true
}

// over reports whether an answer is no longer valid.
func (w *vouch) over() bool {
	select {
	case <-w.done:
		return !time.Now().Before(w.until)
	default:
		return false
	}
}

// introduced records the members at the time when this node became one. It must be called
// before the node runs.
func (km *knownMembers) introduced(members []storage.Introducer) {
	km.introducers = nil
	for _, m := range members {
		km.introducers = append(km.introducers, raft.Server{ID: raft.ServerID(m.UUID), Address: raft.ServerAddress(m.PeerAddr)})
	}
}

// introducing returns the members for a joining node: this node first, because the joining
// node has reached it.
func (km *knownMembers) introducing() []storage.Introducer {
	members := []storage.Introducer{{UUID: km.uuid, PeerAddr: km.record.PeerAddr}}
	for _, s := range km.servers() {
		if string(s.ID) != km.uuid {
			members = append(members, storage.Introducer{UUID: string(s.ID), PeerAddr: string(s.Address)})
		}
	}
	return members
}

// memberAt returns the UUID of the member at a peer address, or "": by Raft's
// configuration, by the records, or by reported addresses.
func (km *knownMembers) memberAt(addr string) (uuid string) {
	for _, s := range km.members() {
		if string(s.Address) == addr {
			return string(s.ID)
		}
	}
	km.fsm.Read(func(m *fsm.Machine) {
		for _, r := range m.Nodes() {
			if r.PeerAddr == addr {
				uuid = r.UUID
			}
		}
	})
	if uuid == "" && km.peers != nil {
		uuid = km.peers.Whereabouts().At(addr)
	}
	return uuid
}

// recordedOf returns the name and peer address under which the cluster knows a node, "" if
// not recorded.
func (km *knownMembers) recordedOf(uuid string) (nodeID, peerAddr string) {
	km.fsm.Read(func(m *fsm.Machine) {
		if r, ok := m.Node(uuid); ok {
			nodeID, peerAddr = r.NodeID, r.PeerAddr
		}
	})
	for _, s := range km.servers() {
		if string(s.ID) == uuid {
			peerAddr = string(s.Address)
		}
	}
	return nodeID, peerAddr
}

// whoAnswer is a node's description of itself to a leader that is about to make it a
// member.
type whoAnswer struct {
	Record fsm.NodeRecord `json:"record"`
	// Waits says that it has no data and no cluster yet.
	Waits bool `json:"waits"`
}

// askWhoIsAt asks the node at a peer address who it is. The node has proven that it owns
// the record's identity.
func (km *knownMembers) askWhoIsAt(ctx context.Context, addr string) (who whoAnswer, err error) {
	if km.peers == nil {
		return ask[whoAnswer](ctx, km.core, addr, peer.CallWho, struct{}{})
	}
	text, by, err := km.peers.Ask(ctx, addr, peer.CallWho, []byte("{}"))
	if err != nil {
		return who, err
	}
	if err := json.Unmarshal(text, &who); err != nil {
		return who, err
	}
	if who.Record.UUID != by.UUID {
		return whoAnswer{}, fmt.Errorf("node %q claims the identity %s, but has %s", by.NodeID, peer.Printable(who.Record.UUID), by.UUID)
	}
	return who, nil
}

// answerWho says who this node is.
func (km *knownMembers) answerWho(context.Context, []byte) ([]byte, error) {
	return json.Marshal(whoAnswer{Record: km.record})
}

// isMember reports whether the node with that identity and name is a member, as far as this
// node knows; it may lag behind. A member without a record is identified by its identity
// alone.
func (km *knownMembers) isMember(uuid, nodeID string) bool {
	if !km.isServer(uuid) {
		return false
	}
	var record fsm.NodeRecord
	var ok bool
	km.fsm.Read(func(m *fsm.Machine) { record, ok = m.Node(uuid) })
	return !ok || record.NodeID == nodeID
}

// electorate returns the voters by Raft's configuration. If this node is not in it yet, whose
// vote a leader may need to add it, it returns the nodes that made it a member, and itself,
// because its log may have members of long ago.
func (km *knownMembers) electorate() []raft.Server {
	own := raft.Server{ID: raft.ServerID(km.uuid)}
	isOwn := func(s raft.Server) bool { return s.ID == own.ID }
	if len(km.introducers) == 0 || slices.ContainsFunc(km.servers(), isOwn) {
		return km.votersNow()
	}
	return append(slices.DeleteFunc(slices.Clone(km.introducers), isOwn), own)
}
