package api

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// Node is what the HTTP layer needs of the node it serves. Every method is
// safe for concurrent use. Errors are those of package fsm, wrapped.
type Node interface {
	// Propose replicates cmd and returns what became of it once it is on a
	// quorum's disks and applied here. Errors: fsm.ErrNotLeader, ErrNoLeader,
	// ErrOverloaded, ErrShuttingDown, ErrTooLarge, ErrLevel (nothing was written);
	// ErrOutcomeUnknown.
	Propose(ctx context.Context, cmd fsm.Command) (fsm.Proposed, error)

	// Claim is Propose of a claim that waits up to wait until there is something
	// to claim, in order of arrival. caller ends when nobody waits for the answer
	// any more: a claim that waits is then given up and takes nothing; one that is
	// in the log already is answered all the same, so that the caller can give
	// its tasks back. Errors: Propose's; caller's cause when it was given up.
	Claim(caller context.Context, cmd fsm.ClaimNext, wait time.Duration) (fsm.Proposed, error)

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
	WaitEvent(ctx context.Context, after fsm.EventPos) error

	// IsLeader reports whether this node leads and serves: its barrier is done.
	IsLeader() bool

	// LeaderHTTPAddr returns the URL that the leader advertises, as
	// http://host:port, "" if no leader is known.
	LeaderHTTPAddr() string

	// Forward sends req to the leader over the peer port and fills resp with
	// its answer. Errors: fsm.ErrNoLeader, ErrShuttingDown (nothing was sent);
	// ErrOutcomeUnknown (it may have been).
	Forward(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error

	// ForwardWaiting is Forward of a request that the leader may hold for as long
	// as its wait_ms: many share a connection. When ctx ends, the leader learns
	// that the caller has gone.
	ForwardWaiting(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error

	// Ready returns nil if the node knows a leader and has caught up with it,
	// else why not.
	Ready() error

	// Cluster returns what this node sees of the cluster.
	Cluster(ctx context.Context) fsm.ClusterView

	// RemoveNode takes the member named nodeID out of the cluster. Errors:
	// *fsm.MembershipRefused, fsm.ErrNotLeader, ErrNoLeader, ErrShuttingDown
	// (nothing was changed); ErrOutcomeUnknown.
	RemoveNode(ctx context.Context, nodeID string) error

	// Upgrade raises the cluster's feature level to the highest that every member
	// knows, and returns it. From then on no older version can take part. Errors:
	// *fsm.MembershipRefused if a voter cannot be asked, and RemoveNode's.
	Upgrade(ctx context.Context) (level uint32, err error)

	// NodeID returns the operator's name for this node.
	NodeID() string
}
