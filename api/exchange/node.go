package exchange

import (
	"context"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// Node is what the HTTP layer needs of the node it serves. Every method is
// safe for concurrent use. Errors are those of package fsm, wrapped.
type Node interface {
	// Propose replicates cmd and returns the outcome once it is on a
	// quorum's disks and applied here. Errors: fsm.ErrNotLeader, ErrNoLeader,
	// ErrOverloaded, ErrShuttingDown, ErrTooLarge, ErrLevel (nothing was written);
	// ErrOutcomeUnknown.
	Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error)

	// Claim is Propose of a claim that waits up to wait until there is something
	// to claim, in order of arrival. caller ends when nobody waits for the answer
	// any more: a claim that waits is then given up and takes nothing; one that is
	// in the log already is answered all the same, so that the caller can give
	// its tasks back. Errors: Propose's; caller's cause when it was given up.
	Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error)

	// ReadLinearizable calls fn with a state that holds every mutation
	// acknowledged before the call, and at least minIndex, and with the clocks
	// of now. It returns the index of that state. fn must not keep the machine
	// or anything that is not a copy, and must be quick: it runs under the read
	// lock. Errors: fsm.ErrNotLeader, ErrNoLeader, ErrShuttingDown, or ctx's.
	ReadLinearizable(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)

	// ReadStale is ReadLinearizable of what this node happens to have, once it
	// has reached minIndex. Any node answers it.
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)

	// WaitEnded waits until the task has ended, or is there no more, by this
	// node's state; wait at most. It returns at once if it is so already. caller
	// ends when nobody waits for the answer any more. Errors: fsm.ErrOverloaded,
	// ErrShuttingDown; caller's cause.
	WaitEnded(caller context.Context, id uint64, wait time.Duration) error

	// WaitEvent waits until this node's trail has an event behind after; ctx ends
	// it. Errors: fsm.ErrOverloaded, ErrShuttingDown; ctx's cause.
	WaitEvent(ctx context.Context, after event.Pos) error

	// CatchUp waits until this node's state holds every mutation that was acknowledged
	// before the call. Errors: fsm.ErrNoLeader, ErrShuttingDown; ctx's cause.
	CatchUp(ctx context.Context) error

	// IsLeader reports whether this node leads and serves: its barrier is done.
	IsLeader() bool

	// LeaderHTTPAddr returns the URL that the leader advertises, as
	// http://host:port, "" if no leader is known.
	LeaderHTTPAddr() string

	// Forward sends req to the leader over the peer port and fills resp with
	// its answer. room, if not nil, is told how many bytes the answer's body has
	// before it is read; an error of it drops the answer, and is in the chain of
	// ErrOutcomeUnknown. Errors: fsm.ErrNoLeader, ErrShuttingDown (nothing was
	// sent); ErrOutcomeUnknown (it may have been).
	Forward(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response, room func(n int) error) error

	// ForwardWaiting is Forward of a request that the leader may hold for as long
	// as its wait_ms: many share a connection. When ctx ends, the leader learns
	// that the caller has gone.
	ForwardWaiting(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error

	// Ready returns nil if the node knows a leader and has caught up with it,
	// else why not.
	Ready() error

	// Cluster returns what this node sees of the cluster.
	Cluster(ctx context.Context) nodes.ClusterView

	// JoinNode makes the running node named nodeID, whose peer port is at
	// peerAddr, a member: it becomes a voter once it has caught up, unless voter
	// is false. A repeat for a member succeeds. Errors: RemoveNode's.
	JoinNode(ctx context.Context, nodeID, peerAddr string, voter bool) error

	// PromoteNode makes a nonvoter that has caught up a voter, DemoteNode a voter
	// a nonvoter that stays one, and tell the trail. Errors: RemoveNode's.
	PromoteNode(ctx context.Context, nodeID string, by nodes.Operator) error
	DemoteNode(ctx context.Context, nodeID string, by nodes.Operator) error

	// Transfer hands the leadership to the voter named nodeID, to the one that is
	// furthest if that is "", and returns who leads then. Errors: RemoveNode's.
	Transfer(ctx context.Context, nodeID string) (leader string, err error)

	// Hashes returns the state hash of each node that has one, at the newest index
	// that they share. Errors: fsm.ErrNotLeader, ErrNoLeader, ErrShuttingDown.
	Hashes(ctx context.Context) (nodes.HashView, error)

	// TakeSnapshot makes every node write a snapshot now and compact its log, and
	// returns the index of this node's. Errors: fsm.ErrOverloaded,
	// ErrShuttingDown, ErrNotLeader, ErrNoLeader; ErrOutcomeUnknown.
	TakeSnapshot(ctx context.Context) (index uint64, err error)

	// SaveBackup captures this node's state as a backup, once it holds every
	// mutation acknowledged before the call; if stale is true, as it is. The caller writes it out, which
	// serving goes on beside, and must release it. Errors: fsm.ErrNoLeader,
	// ErrOverloaded, ErrShuttingDown; ctx's cause.
	SaveBackup(ctx context.Context, stale bool) (*fsm.Backup, error)

	// RestoreBackup makes the backup that r reads the state of an empty cluster,
	// with counters that have jumped, and returns the index it has there. Errors:
	// fsm.ErrNotEmpty, ErrCorrupt, ErrUnknownCommand, ErrCountersUsedUp,
	// *fsm.MembershipRefused, fsm.ErrNotLeader, ErrNoLeader, ErrOverloaded,
	// ErrShuttingDown, those of r and of the disk (nothing was changed);
	// ErrOutcomeUnknown.
	RestoreBackup(ctx context.Context, r io.Reader) (index uint64, err error)

	// RemoveNode takes the member named nodeID out of the cluster, and tells the trail
	// of it. Errors:
	// *fsm.MembershipRefused, fsm.ErrNotLeader, ErrNoLeader, ErrShuttingDown
	// (nothing was changed); ErrOutcomeUnknown.
	RemoveNode(ctx context.Context, nodeID string, by nodes.Operator) error

	// Upgrade raises the cluster's feature level to the highest that every member
	// knows, and returns it; by is whose key it was, "" in open mode. From then on
	// no older version can take part. Errors: *fsm.MembershipRefused if a voter
	// cannot be asked, and RemoveNode's.
	Upgrade(ctx context.Context, by string) (level uint32, err error)

	// Tell tells of an operator's act in the trail, through the leader, which looks
	// up by itself whose key it was; key is "" if it was nobody's. Below the feature
	// level that knows it, it does nothing. Errors: fsm.ErrNoLeader,
	// ErrShuttingDown, ErrOverloaded (it was not told); else it may have been.
	Tell(ctx context.Context, cmd command.Tell, key string) error

	// NodeID returns the operator's name for this node.
	NodeID() string
}
