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

// Node is the interface of a node that the HTTP layer needs. Every method is safe for concurrent use. Unless they say
// otherwise, errors are those of package nodes, wrapped.
type Node interface {
	// Propose replicates cmd and returns the outcome once it is on a quorum's disks and applied here. Errors:
	// ErrNotLeader, ErrNoLeader, ErrOverloaded, ErrShuttingDown, ErrTooLarge, ErrLevel (nothing was written);
	// ErrOutcomeUnknown.
	Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error)

	// Claim is Propose for a claim that waits, in order of arrival, for up to wait until there is something to claim.
	// caller ends when the caller no longer waits for the answer: a waiting claim is then given up and takes nothing.
	// One that is in the log already is still answered, so that the caller can release its tasks. room, if not nil,
	// takes memory for the result before the claim is proposed; give is called if the claim waits again. Errors: as
	// Propose; room's; caller's cause when it was given up.
	Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, room func(context.Context) (give func(), err error)) (nodes.Proposed, error)

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

	// Forward sends req to the leader over the peer port and fills resp with its answer. room, if not nil, is called
	// with the size of the answer's body before it is read; if it fails, the answer is dropped, and the error is
	// wrapped together with ErrOutcomeUnknown. Errors: ErrNoLeader, ErrShuttingDown (nothing was sent);
	// ErrOutcomeUnknown (it may have been).
	Forward(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response, room func(n int) error) error

	// ForwardWaiting is Forward for a request that the leader may hold for its wait_ms; many such requests share a
	// connection. When ctx ends, the leader is told that the caller has gone.
	ForwardWaiting(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error

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
	// there was none. Below the feature level that knows the command, it does nothing. Errors: ErrNoLeader,
	// ErrShuttingDown, ErrOverloaded (nothing was recorded); after other errors it may have been.
	Tell(ctx context.Context, cmd command.Tell, key string) error

	// NodeID returns the operator's name for this node.
	NodeID() string
}
