package fsm

import (
	"io"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// Task and the other names below are the part of package record that other packages use, so
// that they need not import it.
type (
	Task                = record.Task
	Options             = record.Options
	Label               = record.Label
	Backoff             = record.Backoff
	Attempt             = record.Attempt
	Outcome             = record.Outcome
	FollowUp            = record.FollowUp
	ClaimRef            = record.ClaimRef
	Parent              = record.Parent
	Step                = record.Step
	Plan                = record.Plan
	PlannedStep         = record.PlannedStep
	Finalization        = record.Finalization
	FinalizationAttempt = record.FinalizationAttempt
	FinalizationOutcome = record.FinalizationOutcome
	NewTask             = record.NewTask
	NewParent           = record.NewParent
	NewStep             = record.NewStep
	AddedStep           = record.AddedStep
	Filter              = record.Filter
	Schedule            = record.Schedule
	ScheduleView        = record.ScheduleView
	TypeFields          = record.TypeFields
	TypeSettings        = record.TypeSettings
	ShareSettings       = record.ShareSettings
	ShareState          = index.ShareState
	Defaults            = record.Defaults
	Minute              = record.Minute
	Quantiles           = record.Quantiles
	NodeRecord          = record.NodeRecord
	JoinToken           = record.JoinToken
	Stamp               = record.Stamp
	Status              = record.Status
	Move                = record.Move
	MoveStatus          = record.MoveStatus
	MoveFailure         = record.MoveFailure

	Snapshot   = snapshot.Snapshot
	Hasher     = snapshot.Hasher
	Backup     = snapshot.Backup
	BackupInfo = snapshot.BackupInfo
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
