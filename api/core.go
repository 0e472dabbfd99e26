package api

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/meter"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// core holds what all requests of a server share. It is safe for concurrent use.
type core struct {
	cfg     *Config
	node    Node
	logger  hclog.Logger
	hosts   map[string]bool // advertised names and addresses, in lower case
	origins map[string]bool // whose pages may call the API
	// keys are the API keys; nil makes the server open.
	keys     atomic.Pointer[door.Keyring]
	shares   door.Shares // of the keys
	presence *presence
	begun    time.Time

	waits *deadlines
	stop  context.CancelFunc // ends the waiting of every request
	// serving ends with nodes.ErrShuttingDown when the server drains, so that no request keeps waiting.
	serving  context.Context
	leave    context.CancelCauseFunc
	draining atomic.Bool
	leaving  atomic.Bool // set before draining; until then everything is served

	// long has the turns of reads that may read much, searches those that search params, short all others.
	long, short, searches *door.FairQueue

	denials  door.Sampled // samples answers of 401 and 403 for the log
	requests sync.Pool    // of *request

	// Set by begin.
	port    *door.Port
	metrics *meter.Metrics
	calls   *table
	sqs     *queues
}

// newCore returns a core, which serves nothing before begin. It fails for an invalid origin.
func newCore(cfg *Config) (*core, error) {
	origins, err := parseOrigins(cfg.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	begun := time.Now()
	s := &core{
		cfg: cfg, node: cfg.Node, logger: cfg.Logger, hosts: make(map[string]bool), origins: origins,
		waits: newDeadlines(ctx, cfg.Wait), stop: stop, begun: begun, presence: newPresence(begun),
		long: newLong(), short: newShort(), searches: newSearches(),
	}
	for _, name := range cfg.AdvertisedHosts {
		s.hosts[hostName(name)] = true
	}
	s.serving, s.leave = context.WithCancelCause(ctx)
	s.shares.Keys = &s.keys
	s.shares.Limits = door.ShareLimits{
		door.ShareConnection: max(cfg.Connections/2, 1), door.ShareWait: cfg.WaitsPerKey, door.ShareStream: trail.StreamsMax / 2,
	}
	s.requests.New = func() any { return &request{core: s} }
	return s, nil
}

// begin sets the calls, the port, and the metrics.
func (s *core) begin(p *door.Port, metrics *meter.Metrics, calls []call) {
	s.port, s.metrics, s.calls = p, metrics, newTable(calls, metrics)
}

// drain refuses new requests with shutting_down, and ends waiting ones the same way. It may be called twice.
func (s *core) drain() {
	s.draining.Store(true)
	s.leave(nodes.ErrShuttingDown)
}

// open reports whether there are no keys and no tokens.
func (s *core) open() bool { return s.keys.Load() == nil }

// deadlines hands out contexts that end at most wait later. Requests that begin in the same slice of time share a
// context, because a timer and an allocation for each request would cost more than decoding it.
type deadlines struct {
	base  context.Context
	wait  time.Duration
	slice time.Duration

	current atomic.Pointer[deadline]
	mu      sync.Mutex // serializes making the next one
}

type deadline struct {
	ctx   context.Context
	until time.Time // for requests that begin before
}

func newDeadlines(base context.Context, wait time.Duration) *deadlines {
	return &deadlines{base: base, wait: wait, slice: min(wait/2, 500*time.Millisecond)}
}

// at returns the context for a request that began at now.
func (d *deadlines) at(now time.Time) context.Context {
	if c := d.current.Load(); c != nil && now.Before(c.until) {
		return c.ctx
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.current.Load(); c != nil && now.Before(c.until) {
		return c.ctx
	}
	ctx, cancel := context.WithDeadline(d.base, now.Add(d.wait))
	// The context is meant to outlive this call; it is freed by its own deadline or the end of base.
	context.AfterFunc(ctx, cancel)
	d.current.Store(&deadline{ctx: ctx, until: now.Add(d.slice)})
	return ctx
}

// turnWait limits how long a read waits for its turn.
const turnWait = 5 * time.Second

// newLong returns the queue of reads that may read much more than they show. Each waiting one occupies its request's
// memory, about 20 KiB.
func newLong() *door.FairQueue {
	return door.NewFairQueue(door.FairQueueConfig{
		AtATime: atATime(), Waiting: 1_024, Wait: turnWait, Rest: 50 * time.Millisecond,
		Bound: nodes.BoundReads, Text: "as many long reads wait for their turn as may, or this one has waited for 5 s",
	})
}

// newSearches returns the queue of reads that search params. A search of all tasks may take seconds. It works for only
// a tenth of that time, so that it does not slow down mutations and other reads.
func newSearches() *door.FairQueue {
	return door.NewFairQueue(door.FairQueueConfig{
		AtATime: 1, Waiting: 256, Wait: turnWait, Rests: 9, Rest: 50 * time.Millisecond,
		Bound: nodes.BoundReads, Text: "as many searches wait for their turn as may, or this one has waited for 5 s",
	})
}

// newShort returns the queue of the other reads. Each takes less CPU time than its transport, but without a limit as
// many of them as there are connections could be ahead of Raft in the queue for a core.
func newShort() *door.FairQueue {
	return door.NewFairQueue(door.FairQueueConfig{
		AtATime: atATime(), Waiting: 8_192, Wait: turnWait, Rest: 2 * time.Millisecond, Cost: 150 * time.Microsecond,
		Bound: nodes.BoundReads, Text: "as many reads wait for their turn as may, or this one has waited for 5 s",
	})
}

// atATime returns how many reads of a queue run at a time: one for each two cores.
func atATime() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// Node is the interface of a node that the HTTP layer needs. Every method is safe for concurrent use. Unless they say
// otherwise, errors are those of package nodes, wrapped.
type Node interface {
	// Propose replicates cmd and returns the outcome once it is on a quorum's disks and applied here. Errors:
	// ErrNotLeader, ErrNoLeader, ErrOverloaded, ErrShuttingDown, ErrTooLarge, ErrLevel (nothing was written);
	// ErrOutcomeUnknown.
	Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error)

	// Claim is Propose for a claim that waits, in order of arrival, for up to wait until there is something to claim.
	// caller ends when the caller no longer waits for the answer: a waiting claim is then given up and takes nothing.
	// One that is in the log already is still answered, so that the caller can release its tasks. reserve, if not nil,
	// reserves memory for the result before the claim is proposed; free is called if the claim waits again. Errors: as
	// Propose; reserve's; caller's cause when it was given up.
	Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, reserve func(context.Context) (free func(), err error)) (nodes.Proposed, error)

	// ReadLinearizable calls fn with the current clocks and a state that includes every mutation acknowledged before
	// the call, and at least minIndex. It returns the index of that state. fn must not keep the machine or anything
	// that is not a copy, and must be quick because it runs under the read lock. Errors: ErrNotLeader, ErrNoLeader,
	// ErrShuttingDown, or ctx's.
	ReadLinearizable(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)

	// ReadStale calls fn with this node's state once it has reached minIndex. Any node answers it.
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)

	// WaitEnded waits until the task has ended or was removed in this node's state, but at most for wait. caller ends
	// when the caller no longer waits for the answer. Errors: ErrOverloaded, ErrShuttingDown; caller's cause.
	WaitEnded(caller context.Context, id uint64, wait time.Duration) error

	// WaitEvent waits until this node's trail has an event after after, or ctx ends. Errors: ErrOverloaded,
	// ErrShuttingDown; ctx's cause.
	WaitEvent(ctx context.Context, after event.Pos) error

	// CatchUp waits until this node's state includes every mutation acknowledged before the call. Errors:
	// ErrNoLeader, ErrShuttingDown; ctx's cause.
	CatchUp(ctx context.Context) error

	// IsLeader reports whether this node leads and its barrier is done, so that it serves.
	IsLeader() bool

	// LeaderHTTPAddr returns the URL that the leader advertises, as http://host:port, or "" if no leader is known.
	LeaderHTTPAddr() string

	// Forward passes req on to the leader as it was received, at most once, and fills resp with its answer. ctx says how
	// long the answer is wanted; once the leader holds the request, pass.Held says it. Errors: ErrNoLeader,
	// ErrShuttingDown (nothing was sent); ErrOutcomeUnknown (it may have been).
	Forward(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error)

	// Release releases claims whose first answer was not delivered, here or through the leader. A claim that another
	// answer has told its worker of stays. Errors: as Propose; after any other it may be released.
	Release(ctx context.Context, holds []command.Hold) error

	// Ready returns nil if the node knows a leader and has caught up with it; otherwise it returns why not.
	Ready() error

	// Cluster returns this node's view of the cluster.
	Cluster(ctx context.Context) nodes.ClusterView

	// JoinNode makes the running node named nodeID, whose peer port is at peerAddr, a member. It becomes a voter once
	// it has caught up, unless voter is false. A repeat for a member succeeds. Errors: as RemoveNode.
	JoinNode(ctx context.Context, nodeID, peerAddr string, voter bool) error

	// PromoteNode makes a nonvoter that has caught up a voter, DemoteNode a voter a permanent nonvoter. Both record
	// it in the trail. Errors: as RemoveNode.
	PromoteNode(ctx context.Context, nodeID string, by nodes.Operator) error
	DemoteNode(ctx context.Context, nodeID string, by nodes.Operator) error

	// Transfer hands the leadership to the voter named nodeID, or if that is "" to the one that is furthest, and
	// returns the new leader. Errors: as RemoveNode.
	Transfer(ctx context.Context, nodeID string) (leader string, err error)

	// Hashes returns the state hash of each node that has one, at the newest index that they share. Errors:
	// ErrNotLeader, ErrNoLeader, ErrShuttingDown.
	Hashes(ctx context.Context) (nodes.HashView, error)

	// TakeSnapshot makes every node write a snapshot and compact its log, and returns the index of this node's
	// snapshot. Errors: ErrOverloaded, ErrShuttingDown, ErrNotLeader, ErrNoLeader; ErrOutcomeUnknown.
	TakeSnapshot(ctx context.Context) (index uint64, err error)

	// SaveBackup captures this node's state as a backup, once it includes every mutation acknowledged before the
	// call, or at once if stale is true. The caller writes it out while the node keeps serving, and must release it.
	// Errors: ErrNoLeader, ErrOverloaded, ErrShuttingDown; ctx's cause.
	SaveBackup(ctx context.Context, stale bool) (*fsm.Backup, error)

	// RestoreBackup makes the backup read from r the state of an empty cluster, with its counters moved ahead, and
	// returns the index of that state. Errors: ErrNotEmpty, *MembershipRefused, ErrNotLeader, ErrNoLeader,
	// ErrOverloaded, ErrShuttingDown; fsm.ErrCorrupt, fsm.ErrUnknownCommand, fsm.ErrCountersUsedUp; errors of r and
	// of the disk (nothing was changed); ErrOutcomeUnknown.
	RestoreBackup(ctx context.Context, r io.Reader) (index uint64, err error)

	// RemoveNode removes the member named nodeID from the cluster, and records it in the trail. Errors:
	// *MembershipRefused, ErrNotLeader, ErrNoLeader, ErrShuttingDown (nothing was changed); ErrOutcomeUnknown.
	RemoveNode(ctx context.Context, nodeID string, by nodes.Operator) error

	// Upgrade raises the cluster's feature level to the highest that every member knows, and returns it. Older
	// versions cannot take part from then on. by is the name of the operator's key, "" in open mode. Errors:
	// *MembershipRefused if a voter cannot be asked; as RemoveNode.
	Upgrade(ctx context.Context, by string) (level uint32, err error)

	// Tell records an operator's action in the trail, through the leader, which looks up key by itself; key is "" if
	// the request had no key. Below the feature level that knows the command, it does nothing. Errors: ErrNoLeader,
	// ErrShuttingDown, ErrOverloaded (nothing was recorded); after other errors it may have been.
	Tell(ctx context.Context, cmd command.Tell, key string) error

	// NodeID returns the operator's name for this node.
	NodeID() string
}
