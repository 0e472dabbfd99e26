package nodes

import "errors"

// Errors of proposing and reading, declared here so that the HTTP layer and
// the node share them without knowing each other.
var (
	// ErrNotLeader is returned when this node does not lead. Nothing was written.
	ErrNotLeader = errors.New("this node is not the leader")
	// ErrNoLeader is returned when the cluster has no leader, or the leader
	// could not confirm that it still leads. Nothing was written.
	ErrNoLeader = errors.New("the cluster has no leader")
	// ErrOverloaded is returned when a bound of queue, memory or disk is
	// reached. Nothing was written.
	ErrOverloaded = errors.New("the node is overloaded")
	// ErrShuttingDown is returned once the node has begun to stop. Nothing was
	// written.
	ErrShuttingDown = errors.New("the node is shutting down")
	// ErrOutcomeUnknown is returned when the command may or may not be applied,
	// now or later.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrTooLarge is returned when a command is larger than an entry may be.
	// Nothing was written.
	ErrTooLarge = errors.New("the command is too large for a log entry")
	// ErrLevel is returned for a command that the cluster's feature level does
	// not have yet. Nothing was written.
	ErrLevel = errors.New("the cluster's feature level is too low for this")
	// ErrNotEmpty is returned for a restore into a cluster that holds something.
	// Nothing was changed.
	ErrNotEmpty = errors.New("the cluster is not empty")
)

// Bound names what is full. The values are shown to users.
type Bound string

// The bounds for which a node refuses work.
const (
	BoundMemory        Bound = "memory"         // memory_limit
	BoundDisk          Bound = "disk"           // disk_free_min, here or on a majority
	BoundInFlight      Bound = "in_flight"      // commands that wait to be written, or too long
	BoundWaitingClaims Bound = "waiting_claims" // parked at the leader
	BoundWaitingReads  Bound = "waiting_reads"  // for an index, the end of a task, events
	BoundConnections   Bound = "connections"    // of the API, kept there
	BoundBodies        Bound = "bodies"         // of requests that are received, kept there
	BoundAnswers       Bound = "answers"        // that are not written yet, kept there
	BoundReads         Bound = "reads"          // that wait for their turn, kept there

	// Of one API key, kept there.
	BoundKeyConnections Bound = "key_connections"
	BoundKeyWaits       Bound = "key_waits"
	BoundKeyStreams     Bound = "key_streams"
	// The keys of the issuer of tokens are not there, kept there.
	BoundIssuer Bound = "issuer"
)

// Overload is an ErrOverloaded that says what is full.
type Overload struct {
	Bound Bound
	Text  string // what is full, for the log
}

func (e *Overload) Error() string { return ErrOverloaded.Error() + ": " + e.Text }

// Unwrap returns ErrOverloaded.
func (e *Overload) Unwrap() error { return ErrOverloaded }

// MembershipRefused is returned for a change of the membership that would harm
// the cluster, or that makes no sense. Nothing was changed.
type MembershipRefused struct {
	Reason string // what is wrong
	Advice string // what to do instead
}

func (e *MembershipRefused) Error() string { return e.Reason + ": " + e.Advice }
