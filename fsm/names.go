package fsm

import (
	"io"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// Other packages use these types of package record by the names below, so that they need not import it.

// What a command submits. The times of tasks are in milliseconds; those with a name in At are since the Unix epoch,
// by T.
type (
	NewTask   = record.NewTask   // a task, validated
	NewParent = record.NewParent // its steps, if it is a parent
	NewStep   = record.NewStep   // one of them
	AddedStep = record.AddedStep // a step for a running parent
	Label     = record.Label     // a label of a task
	Backoff   = record.Backoff   // the wait after an attempt that failed or expired
)

// A task, and what belongs to it. All are read-only and shared with the state, except copies in a Result.
type (
	Task     = record.Task
	Options  = record.Options // its less frequent fields
	Status   = record.Status
	Attempt  = record.Attempt  // one of its claims, under way or ended
	Outcome  = record.Outcome  // how a claim ended
	FollowUp = record.FollowUp // a task that its completion submitted
	ClaimRef = record.ClaimRef // a claim, by task and token
)

// Steps, and the finalization of their parent.
type (
	Parent              = record.Parent
	Step                = record.Step
	Plan                = record.Plan        // the names and dependencies of all steps of a parent
	PlannedStep         = record.PlannedStep // those of one
	Finalization        = record.Finalization
	FinalizationAttempt = record.FinalizationAttempt // an attempt to claim it
	FinalizationOutcome = record.FinalizationOutcome // how that ended
)

// Task types, shares and schedules.
type (
	TypeSettings  = record.TypeSettings
	TypeFields    = record.TypeFields // a set of fields of TypeSettings
	Defaults      = record.Defaults   // the settings for all types
	ShareSettings = record.ShareSettings
	ShareState    = index.ShareState
	Schedule      = record.Schedule     // as an operator sets it
	ScheduleView  = record.ScheduleView // with its progress
	Move          = record.Move         // of a type's waiting tasks to another type
	MoveStatus    = record.MoveStatus
	MoveFailure   = record.MoveFailure
)

// The rest of the state.
type (
	Stamp      = record.Stamp      // the two clocks, in milliseconds
	Filter     = record.Filter     // selects tasks; zero fields do not filter
	Minute     = record.Minute     // one minute of a history
	Quantiles  = record.Quantiles  // of durations, as buckets of package latency
	NodeRecord = record.NodeRecord // a node of the cluster
	JoinToken  = record.JoinToken  // lets nodes join
)

// Encoded states.
type (
	Snapshot   = snapshot.Snapshot   // a captured state
	Hasher     = snapshot.Hasher     // hashes states, and reuses the hashes of what did not change
	Backup     = snapshot.Backup     // a snapshot as a backup is written
	BackupInfo = snapshot.BackupInfo // the header of a backup
)

// The statuses of a task.
const (
	StatusPending   = record.StatusPending
	StatusScheduled = record.StatusScheduled
	StatusBlocked   = record.StatusBlocked
	StatusClaimed   = record.StatusClaimed
	StatusRunning   = record.StatusRunning
	StatusCompleted = record.StatusCompleted
	StatusFailed    = record.StatusFailed
	StatusCancelled = record.StatusCancelled
)

// The outcomes of claiming a finalization, and the outcome of a claim that has not ended.
const (
	FinalizationClaimed        = record.FinalizationClaimed
	FinalizationExtended       = record.FinalizationExtended
	FinalizationAlreadyClaimed = record.FinalizationAlreadyClaimed
	FinalizationAlreadyDone    = record.FinalizationAlreadyDone
	FinalizationNotReady       = record.FinalizationNotReady
	FinalizationNotFound       = record.FinalizationNotFound
	OutcomeNone                = record.OutcomeNone
)

// The settings of a task type, as bits of TypeFields.
const (
	TypePaused      = record.TypePaused
	TypeMaxClaimed  = record.TypeMaxClaimed
	TypeRateLimit   = record.TypeRateLimit
	TypeLease       = record.TypeLease
	TypeMaxAttempts = record.TypeMaxAttempts
	TypeBackoff     = record.TypeBackoff
	TypeRetention   = record.TypeRetention
	TypeQueue       = record.TypeQueue
	TypeDelay       = record.TypeDelay
	TypeDeadLetter  = record.TypeDeadLetter

	TypeMaxClaimedPerKey = record.TypeMaxClaimedPerKey
	TypeFair             = record.TypeFair
	TypeRateLimitPerKey  = record.TypeRateLimitPerKey
)

// The statuses of a move.
const (
	MoveRunning   = record.MoveRunning
	MoveCompleted = record.MoveCompleted
	MoveFailed    = record.MoveFailed
	MoveCancelled = record.MoveCancelled
)

// Why a move failed.
const (
	MoveNoOrigin = record.MoveNoOrigin
	MoveNoType   = record.MoveNoType
	MoveOfStep   = record.MoveOfStep
)

// Bounds and special values of submitted fields.
const (
	StepsMax         = record.StepsMax
	DefaultAttempts  = record.DefaultAttempts
	KeepForever      = record.KeepForever
	KeepNone         = record.KeepNone
	JoinTokenUsesMax = record.JoinTokenUsesMax
	JoinTokenLifeMax = record.JoinTokenLifeMax
	SharesSetMax     = record.SharesSetMax
	ShareWeight      = record.DefaultWeight
	HistoryMinutes   = record.HistoryMinutes
)

// ParseStatus is the inverse of Status.String. ok is false for any other name.
func ParseStatus(name string) (s Status, ok bool) { return record.ParseStatus(name) }

// CountTasks returns how many tasks submitting these adds at most, including steps.
func CountTasks(tasks []NewTask) int { return record.CountTasks(tasks) }

// DefaultsOf returns the settings that also have a server default.
func DefaultsOf(s *TypeSettings) Defaults { return record.DefaultsOf(s) }

// FindCycle returns the places of steps that depend on each other in a cycle, or nil; see
// record.FindCycle.
func FindCycle(n int, dependsOn func(place uint16) []uint16) []uint16 {
	return record.FindCycle(n, dependsOn)
}

// NewHasher returns an empty hasher; see snapshot.NewHasher.
func NewHasher(rest func()) *Hasher { return snapshot.NewHasher(rest) }

// NewBackup makes a backup of s and takes over s; see snapshot.NewBackup.
func NewBackup(s *Snapshot, info BackupInfo) *Backup { return snapshot.NewBackup(s, info) }

// CheckBackup verifies the checksum of the backup of size bytes in r without building its
// state; see snapshot.CheckBackup.
func CheckBackup(r io.ReaderAt, size int64) (BackupInfo, error) { return snapshot.CheckBackup(r, size) }

// ReadBackupInfo reads a backup's description of itself, and where its snapshot begins; see
// snapshot.ReadBackupInfo.
func ReadBackupInfo(r io.ReaderAt, size int64) (info BackupInfo, start int64, err error) {
	return snapshot.ReadBackupInfo(r, size)
}

// Errors for log entries and snapshots, from package record.
var (
	// ErrUnknownCommand is returned for an entry or snapshot with something that this
	// binary does not know: a version, command type, field or feature level. The node must
	// stop, because skipping it would make its state differ from the other nodes'.
	ErrUnknownCommand = record.ErrUnknown
	// ErrCorrupt is returned for an entry or snapshot whose bytes are
	// damaged.
	ErrCorrupt = record.ErrCorrupt
	// ErrDevelopment is returned for an entry, a snapshot or a backup that was made by a
	// development build before 0.1.0.
	ErrDevelopment = record.ErrDevelopment
)

// Format is the version of entries, snapshots, backups and data folders.
const Format = record.Format

// FeatureLevel returns the highest feature level that this binary knows.
func FeatureLevel() uint32 { return record.FeatureLevel }
