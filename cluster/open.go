package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
)

// aloneWait is the time for which a node that is about to create a cluster first listens
// for members of an old one. Their leader would try to reach it four times a second.
const aloneWait = time.Second

// ErrNoCluster is returned when the data folder is empty, no way to find a cluster was
// configured, and no operator made the node a member while it waited.
var ErrNoCluster = errors.New("the data folder is empty and no cluster is named")

// Open starts a node. With --join and --initial-cluster it waits for the other nodes until
// ctx ends. The caller must close the node.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if cfg.NoRaft {
		n, err := newNode(cfg, Parts{UUID: "no-raft"})
		if err != nil {
			return nil, err
		}
		n.run()
		return n, nil
	}
	o := &opening{cfg: cfg, admitted: make(chan joining.Admission, 1), missed: make(chan peer.Hello, 1), ran: make(chan struct{}), gate: confirm.NewVoteGate()}
	n, err := o.open(ctx)
	if err != nil {
		return nil, errors.Join(err, o.undo())
	}
	return n, nil
}

// opening is a node that is being opened.
type opening struct {
	cfg    Config
	dir    *storage.Dir
	stores *storage.Stores
	peers  *peer.Port
	gate   *confirm.VoteGate
	starts *storage.Starts // of the other nodes
	// admitted receives the news that an operator has made this waiting node a member;
	// capacity 1.
	admitted chan joining.Admission
	// missed receives nodes that dialed this one as a member, or meant another identity;
	// capacity 1.
	missed chan peer.Hello

	// starting is held while the node has data but no Raft that knows its members, so that
	// nodes in a meeting wait instead of being told that this one is empty.
	starting sync.RWMutex
	ran      chan struct{} // closed when Raft runs
	mu       sync.Mutex
	node     *Node // guarded by mu; set when Raft runs
}

// undo closes what was opened, in reverse.
func (o *opening) undo() error {
	var errs []error
	if o.stores != nil {
		errs = append(errs, o.stores.Close())
	}
	if o.peers != nil {
		errs = append(errs, o.peers.Close())
	}
	if o.dir != nil {
		errs = append(errs, o.dir.Close())
	}
	return errors.Join(errs...)
}

func (o *opening) open(ctx context.Context) (*Node, error) {
	var err error
	// The folder comes first: it is locked against a second process, and its identity must
	// be durable before other nodes hear of it.
	if o.dir, err = storage.OpenDir(o.cfg.DataDir, o.cfg.NodeID); err != nil {
		return nil, err
	}
	// The stores come before the port, because a node with a damaged log must not talk to
	// others.
	var stats *nodeStats
	n, err := newNode(o.cfg, Parts{UUID: o.dir.Identity().UUID})
	if err != nil {
		return nil, err
	}
	stats = n.stats
	defer func() {
		if err != nil {
			stats.unregister()
			n.cancel(errNodeClosed)
		}
	}()
	o.stores, err = storage.Open(o.dir, storage.Config{
		Logger: o.cfg.Logger, Fatal: o.cfg.Fatal, SegmentBytes: o.cfg.segmentBytes,
		ObserveFsync: func(d time.Duration) { stats.fsync.Observe(d.Seconds()) },
	})
	if err != nil {
		return nil, err
	}
	has, err := o.stores.HasState()
	if err != nil {
		return nil, err
	}
	if o.starts, err = storage.OpenStarts(o.dir.Path()); err != nil {
		return nil, err
	}
	if has {
		o.starting.Lock()
	}
	// The port comes before Raft, because nodes without data meet on it.
	if o.peers, err = peer.Listen(o.peerConfig(n)); err != nil {
		return nil, err
	}
	n.record.PeerAddr = o.peers.Addr()
	meeting := o.meetConfig()
	joining.ServeMeetings(o.peers, meeting)
	serveStarts(o.peers, o.starts, n.uuid)
	gated := func() raft.Transport {
		return confirm.Gated(peer.NewRaftTransport(o.peers.StreamLayer(), o.cfg.Logger), o.gate)
	}
	parts := Parts{Logs: o.stores.Log, Stable: o.stores.Stable, Snapshots: o.stores.Snapshots, Transport: gated()}
	parts.NewTransport = func() (raft.Transport, error) { return gated(), nil }
	n.known.introduced(o.dir.Identity().Introducers)
	n.logs = parts.Logs
	n.dir, n.stores, n.peers, n.gate, n.call = o.dir, o.stores, o.peers, o.gate, o.peers.Call
	if !has {
		o.serveAdmission(n)
		if parts.Servers, err = o.findCluster(ctx, n, meeting); err != nil {
			return nil, errors.Join(err, confirm.CloseTransport(parts.Transport))
		}
		o.starting.Lock() // from here on this node is not empty
	}
	err = n.startRaft(parts)
	if err == nil {
		o.runs(n)
	}
	o.starting.Unlock()
	if errors.Is(err, fsm.ErrCorrupt) {
		err = fmt.Errorf("%w: %w: %s", storage.ErrCorruptSnapshot, err, storage.RejoinAdvice(o.dir.Path()))
	}
	if err != nil {
		return nil, errors.Join(err, confirm.CloseTransport(parts.Transport))
	}
	// Calls and joins come last, because they use the node's Raft.
	o.serve(n)
	n.start(func() { n.levels.noteLevels(n.ctx) })
	n.start(func() { n.proveStart(n.ctx) })
	n.run()
	return n, nil
}

// proveStart proves that the node's data folder is no old copy, and keeps announcing its
// start until ctx ends.
func (n *Node) proveStart(ctx context.Context) {
	p := &startProof{
		uuid: n.uuid, dir: n.dir, gate: n.gate, members: n.standing, clock: n.clock, fatal: n.cfg.Fatal, logger: n.logger,
		ask: func(ctx context.Context, addr string, s storage.Start) (startAnswer, error) {
			return ask[startAnswer](ctx, n.core, addr, callStart, s)
		},
		moved: n.peers.Whereabouts().Heard, tellInterval: n.cfg.interval(startTellInterval),
	}
	p.run(ctx)
}

// self returns this node's hello for new connections.
func (o *opening) self() peer.Hello {
	id, start := o.dir.Identity(), o.dir.NextStart()
	return peer.Hello{
		ClusterID: id.ClusterID, UUID: id.UUID, NodeID: id.NodeID, FeatureLevel: fsm.FeatureLevel(), Version: o.cfg.Version,
		StartNumber: start.Number, StartNonce: start.Nonce,
	}
}

func (o *opening) running() *Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.node
}

// runs records that Raft runs.
func (o *opening) runs(n *Node) {
	o.mu.Lock()
	o.node = n
	o.mu.Unlock()
	close(o.ran)
}

func (o *opening) peerConfig(n *Node) peer.Config {
	return peer.Config{
		ListenAddr:  o.cfg.PeerAddr,
		Advertise:   o.cfg.PeerAdvertise,
		JoinKeys:    o.cfg.joinKeys,
		Certificate: o.cfg.PeerCertificate,
		TLSMode:     o.cfg.PeerTLSMode,
		Self:        o.self,
		Signer:      o.dir.Key(),
		Logger:      o.cfg.Logger.Named("peers"),
		Connections: o.cfg.PeerConnections,
		Admit: func(ctx context.Context, purpose peer.Purpose, other peer.Hello) error {
			if level := n.fsm.Level(); other.FeatureLevel < level {
				return fmt.Errorf("node %q knows feature level %d, the cluster is at %d: run a newer version on it", other.NodeID, other.FeatureLevel, level)
			}
			if purpose == peer.PurposeMeet {
				return nil
			}
			// Until Raft runs, this node does not know the members.
			select {
			case <-o.ran:
				return nil
			default:
				o.noteMissed(other)
			}
			select {
			case <-o.ran:
				return nil
			case <-ctx.Done():
				return errors.New("this node is starting, or waits to be joined")
			}
		},
		Member: func(other peer.Hello) bool {
			n := o.running()
			return n != nil && n.known.isMember(other.UUID, other.NodeID)
		},
		RaftPeer: func(ctx context.Context, other peer.Hello, host string) error {
			return o.running().known.raftPeer(ctx, other, host)
		},
		Superseded: func(other peer.Hello) error { return superseded(o.starts, other) },
		Recorded: func(uuid string) (nodeID, peerAddr string) {
			if n := o.running(); n != nil {
				return n.known.recordedOf(uuid)
			}
			return "", ""
		},
		Missed: o.noteMissed,
		TargetUUID: func(addr string) string {
			if n := o.running(); n != nil {
				return n.known.memberAt(addr)
			}
			return ""
		},
	}
}

// noteMissed records that a node takes this one for a member of its cluster, or for the node that
// it was before its folder was wiped.
func (o *opening) noteMissed(by peer.Hello) {
	if by.ClusterID == "" {
		return
	}
	select {
	case o.missed <- by:
	default:
	}
}

func (o *opening) meetConfig() joining.MeetConfig {
	return joining.MeetConfig{
		Self:   o.self,
		List:   o.cfg.InitialCluster,
		Logger: o.cfg.Logger,
		State: func() joining.MeetState {
			o.starting.RLock()
			defer o.starting.RUnlock()
			var s joining.MeetState
			if n := o.running(); n != nil {
				for _, server := range n.servers() {
					s.MemberUUIDs = append(s.MemberUUIDs, string(server.ID))
				}
			}
			s.HasData = len(s.MemberUUIDs) > 0
			return s
		},
	}
}

// findCluster finds the cluster of a node without data and records it durably before Raft
// writes anything. servers is the configuration to bootstrap with, nil = none.
func (o *opening) findCluster(ctx context.Context, n *Node, meetings joining.MeetConfig) (servers []raft.Server, err error) {
	var clusterID string
	var members []storage.Introducer
	switch {
	case o.cfg.Bootstrap:
		if err := o.checkAlone(ctx, n); err != nil {
			return nil, err
		}
		if clusterID = o.dir.Identity().ClusterID; clusterID == "" {
			id, err := uuid.NewV7()
			if err != nil {
				return nil, fmt.Errorf("make a cluster id: %w", err)
			}
			clusterID = id.String()
		}
		servers = []raft.Server{{ID: raft.ServerID(n.uuid), Address: raft.ServerAddress(n.record.PeerAddr)}}
	case len(o.cfg.InitialCluster) > 0:
		m, err := joining.Meet(ctx, o.peers, meetings)
		if err != nil {
			return nil, err
		}
		clusterID = m.ClusterID
		if m.Bootstrap {
			servers = m.Configuration.Servers
		} else {
			for _, s := range m.Configuration.Servers {
				members = append(members, storage.Introducer{UUID: string(s.ID), PeerAddr: string(s.Address)})
			}
		}
	case len(o.cfg.Join) > 0:
		token, err := o.cfg.joinToken()
		if err != nil {
			return nil, err
		}
		j, err := joining.Join(ctx, o.peers, o.cfg.Join, joining.Request{NodeRecord: n.record, Token: token}, o.admitted, o.cfg.Logger)
		if err != nil {
			return nil, err
		}
		clusterID, members = j.ClusterID, j.Members
	default:
		a, err := o.awaitAdmission(ctx, n)
		if err != nil {
			return nil, err
		}
		clusterID, members = a.ClusterID, a.Members
	}
	n.known.introduced(members)
	return servers, o.dir.SetCluster(clusterID, members)
}

// serveAdmission lets a node without a cluster answer the leader that makes it a member.
func (o *opening) serveAdmission(n *Node) {
	o.peers.Handle(peer.CallWho, func(context.Context, peer.Hello, []byte) ([]byte, error) {
		return json.Marshal(whoAnswer{Record: n.record, Waits: true})
	})
	o.peers.Handle(peer.CallAdmitted, func(_ context.Context, from peer.Hello, body []byte) ([]byte, error) {
		a, err := peer.ReadQuestion[joining.Admission](body)
		if err != nil {
			return nil, err
		}
		if a.UUID != n.uuid || a.ClusterID == "" || a.ClusterID != from.ClusterID {
			return nil, peer.QuestionError("this admission is for another node")
		}
		a.Members = joining.IntroducedBy(storage.Introducer{UUID: from.UUID, PeerAddr: from.PeerAddr}, a.Members)
		select {
		case o.admitted <- a:
		default: // it has one already
		}
		return []byte("{}"), nil
	})
}

// awaitAdmission waits until an operator makes this node a member, if it has no data and
// was started without a cluster.
func (o *opening) awaitAdmission(ctx context.Context, n *Node) (a joining.Admission, err error) {
	ticker := time.NewTicker(waitLogInterval)
	defer ticker.Stop()
	for {
		o.cfg.Logger.Warn("this node has no data and waits to be joined: run the command against the cluster. "+
			"For a new cluster, start it with --bootstrap or --initial-cluster",
			"data_dir", o.cfg.DataDir, "command", fmt.Sprintf("claimq cluster join %s %s", n.record.NodeID, n.record.PeerAddr))
		select {
		case a = <-o.admitted:
			return a, nil
		case <-ticker.C:
		case <-ctx.Done():
			return a, fmt.Errorf("%w: %s: give --bootstrap for the first node of a new cluster, --initial-cluster for several, or --join: %w",
				ErrNoCluster, o.cfg.DataDir, context.Cause(ctx))
		}
	}
}

// checkAlone refuses to create a cluster if a member of a running one expects a member
// here, of this identity or another. Then this node's folder was wiped or is a copy from
// before it had data, and its old cluster, which goes on without it, would get a rival at
// the same addresses.
func (o *opening) checkAlone(ctx context.Context, n *Node) error {
	timer := time.NewTimer(o.cfg.interval(aloneWait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case from := <-o.missed:
		return fmt.Errorf("%w: node %q of cluster %s takes the node at %s for a member that it has had: the data folder of this node is empty or was wiped, and --bootstrap would make a second cluster. "+
			"It may not take part under its old identity again. Remove the old member first, `claimq cluster remove %s`, and start this node with --join in place of --bootstrap",
			joining.ErrNotAMember, peer.Printable(from.NodeID), peer.Printable(from.ClusterID), n.record.PeerAddr, n.record.NodeID)
	}
}

// serve answers the other nodes' calls.
func (o *opening) serve(n *Node) {
	for name, answer := range n.calls {
		o.peers.Handle(name, func(ctx context.Context, from peer.Hello, body []byte) ([]byte, error) {
			if name == peer.CallStanding {
				if err := aboutItself(from, body); err != nil {
					return nil, err
				}
			}
			return answer(ctx, body)
		})
	}
	joining.ServeJoins(o.peers, joining.JoinConfig{
		Leader: func() (string, bool) {
			addr, id := n.raft.LeaderWithID()
			return string(addr), string(id) == n.uuid
		},
		Admit:   n.joins.admitJoin,
		Members: n.known.introducing,
		Logger:  o.cfg.Logger,
	})
}
