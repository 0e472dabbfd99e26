package nodes

import "errors"

// Errors of proposing and reading. They are declared here so that the HTTP layer and the node can share them without
// knowing each other.
var (
	// ErrNotLeader is returned when this node does not lead. Nothing was written.
	ErrNotLeader = errors.New("this node is not the leader")
	// ErrNoLeader is returned when the cluster has no leader, or the leader
	// could not confirm that it still leads. Nothing was written.
	ErrNoLeader = errors.New("the cluster has no leader")
	// ErrOverloaded is returned when a queue, the memory or the disk is full. Nothing was written.
	ErrOverloaded = errors.New("the node is overloaded")
	// ErrShuttingDown is returned once the node has begun to stop. Nothing was
	// written.
	ErrShuttingDown = errors.New("the node is shutting down")
	// ErrOutcomeUnknown is returned when the command may have been applied, or may still be.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrTooLarge is returned when a command is too large for an entry. Nothing was written.
	ErrTooLarge = errors.New("the command is too large for a log entry")
	// ErrLevel is returned for a command that the cluster's feature level does not have yet. Nothing was written.
	ErrLevel = errors.New("the cluster's feature level is too low for this")
	// ErrNotEmpty is returned for a restore into a cluster that is not empty. Nothing was changed.
	ErrNotEmpty = errors.New("the cluster is not empty")
)

// Bound names what is full. Users see these values.
type Bound string

// Bounds beyond which a node refuses work.
const (
	BoundMemory        Bound = "memory"         // memory_limit
	BoundDisk          Bound = "disk"           // disk_free_min, here or on a majority
	BoundInFlight      Bound = "in_flight"      // commands that wait to be written, in number or time
	BoundWaitingClaims Bound = "waiting_claims" // parked at the leader
	BoundWaitingReads  Bound = "waiting_reads"  // for an index, the end of a task, events
	BoundConnections   Bound = "connections"    // of the API; counted there
	BoundBodies        Bound = "bodies"         // of requests being received; counted there
	BoundAnswers       Bound = "answers"        // not yet written; counted there
	BoundReads         Bound = "reads"          // waiting for their turn; counted there

	// Per API key; counted there.
	BoundKeyConnections Bound = "key_connections"
	BoundKeyWaits       Bound = "key_waits"
	BoundKeyStreams     Bound = "key_streams"
	// The keys of the issuer of tokens are missing; noticed there.
	BoundIssuer Bound = "issuer"
)

// Overload is an ErrOverloaded that names what is full.
type Overload struct {
	Bound Bound
	Text  string // what is full, for the log
}

func (e *Overload) Error() string { return ErrOverloaded.Error() + ": " + e.Text }

// Unwrap returns ErrOverloaded.
func (e *Overload) Unwrap() error { return ErrOverloaded }

// MembershipRefused is returned for a change of the membership that would harm the cluster or makes no sense. Nothing
// was changed.
type MembershipRefused struct {
	Reason string // what is wrong
	Advice string // what to do instead
}

func (e *MembershipRefused) Error() string { return e.Reason + ": " + e.Advice }
