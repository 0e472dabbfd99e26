package nodes

import (
	"errors"

	"github.com/claimq/claimq/fsm"
)

// Proposed is the outcome of one proposed command.
type Proposed struct {
	Index  uint64    // of its entry
	Stamp  fsm.Stamp // the state's clocks after that entry
	Result fsm.Result

	// Release, if not nil, must be called at most once, when Result is no longer read, because its memory is reused
	// then. A caller that keeps Result never calls it.
	Release func()
}

// Errors of proposing and reading.
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

// Overload is an ErrOverloaded that names what is full.
type Overload struct {
	Bound Bound
	Text  string // what is full, for the log
}

func (e *Overload) Error() string { return ErrOverloaded.Error() + ": " + e.Text }

// Unwrap returns ErrOverloaded.
func (e *Overload) Unwrap() error { return ErrOverloaded }

// Bound names what is full. Users see these values.
type Bound string

// Bounds beyond which a node refuses work.
const (
	BoundMemory        Bound = "memory"         // memory_limit
	BoundDisk          Bound = "disk"           // disk_free_min, here or on a majority
	BoundInFlight      Bound = "in_flight"      // commands that wait to be written: too many, or for too long
	BoundWaitingClaims Bound = "waiting_claims" // claims that wait at the leader for a task
	BoundWaitingReads  Bound = "waiting_reads"  // reads that wait for an index, the end of a task, or events
)

// Bounds that the API counts by itself.
const (
	BoundConnections Bound = "connections" // clients' connections
	BoundBodies      Bound = "bodies"      // bytes of requests being received
	BoundAnswers     Bound = "answers"     // bytes of answers not written yet
	BoundReads       Bound = "reads"       // reads that wait for their turn

	BoundKeyConnections Bound = "key_connections" // connections of one API key
	BoundKeyWaits       Bound = "key_waits"       // requests of one API key that wait
	BoundKeyStreams     Bound = "key_streams"     // streams of one API key

	BoundIssuer Bound = "issuer" // nothing is full: the keys of the issuer of tokens have not been fetched
)

// MembershipRefused is returned for a change of the membership that would harm the cluster or makes no sense. Nothing
// was changed.
type MembershipRefused struct {
	Reason string // what is wrong
	Advice string // what to do instead
}

func (e *MembershipRefused) Error() string { return e.Reason + ": " + e.Advice }
