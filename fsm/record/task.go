package record

import "slices"

// Status is where a task is in its life.
type Status uint8

// The statuses. Completed, Failed and Cancelled are ends. The numbers are in
// snapshots and never change.
const (
	StatusPending   Status = 1
	StatusScheduled Status = 2
	StatusBlocked   Status = 3
	StatusClaimed   Status = 4
	StatusRunning   Status = 5
	StatusCompleted Status = 6
	StatusFailed    Status = 7
	StatusCancelled Status = 8
)

var statusNames = [...]string{"", "pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled"}

// String returns the API's name of the status, or "" if it is unknown.
func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return ""
	}
	return statusNames[s]
}

// ParseStatus is the inverse of Status.String. ok is false for any other name.
func ParseStatus(name string) (s Status, ok bool) {
	for i, n := range statusNames {
		if i > 0 && n == name {
			return Status(i), true
		}
	}
	return 0, false
}

// Ended reports whether the status is an end.
func (s Status) Ended() bool { return s >= StatusCompleted }

// The defaults if the server's are not set, and the bound of a task's log. They are part of the
// feature level.
const (
	DefaultMaxAttempts = 3
	DefaultLeaseMS     = 30_000
	AttemptsLogMax     = 20 // claims that a task remembers
)

// Task is one task. Every field is saved. Times ending in At are milliseconds since the Unix
// epoch by the calendar clock T, 0 = never; EndU is by the lease clock U.
//
// A *Task from a Machine is read-only and valid while the caller holds the machine's lock;
// results carry copies. Byte slices are never changed in place and may be kept.
type Task struct {
	ID          uint64
	Type        string
	Params      []byte // JSON as given, or nil
	Payload     []byte // opaque bytes, or nil
	Priority    int32
	MaxAttempts int32 // 0 = no limit
	Attempts    int32 // counted claims
	// LeaseSeq counts the answers about the current claim from 1: extends and, once, a repeat
	// of the complete that began it. 0 if not claimed.
	LeaseSeq        uint32
	Key             string
	LeaseMS         int64 // as submitted; 0 = the type's, else the server's
	Status          Status
	CancelRequested bool
	// Options are the less common fields, nil if all have their defaults. They are never
	// changed in place.
	Options *Options
	// RunAt is when a scheduled task becomes pending; for others, when it last did, or 0.
	RunAt int64

	// WorkerID holds the claim of a claimed task, and ended a completed or failed one;
	// otherwise "".
	WorkerID string
	// Token is the token of the current claim or, after the end, of the last one. It is 0
	// while pending; in a running parent it is from the end that it was retried from.
	// Invariant: Status == StatusClaimed implies Token > 0.
	Token uint64
	// ClaimLeaseMS is the length of the current claim's lease; 0 if not claimed.
	ClaimLeaseMS int64
	// LeaseEndU is when the current lease ends; 0 if not claimed.
	LeaseEndU int64
	ClaimedAt int64 // of the last claim

	CreatedAt   int64
	UpdatedAt   int64
	CompletedAt int64 // when it ended, with any status
	RemoveAt    int64 // when it is removed after its end; 0 = never, or not ended

	Result        []byte // JSON as given, or nil
	ResultPayload []byte // opaque bytes, or nil
	Error         string // of the last failure; kept after a later success

	// Then has the further effects of its completion, or nil. It is never changed in place.
	Then *Then

	// Log has the last 20 claims that have ended, oldest first, but not the one that completed
	// the task: see Claims. Its elements are never changed in place: a change makes a new slice.
	Log []Attempt
}

// Claims returns the last 20 claims of the task, oldest first.
func (t *Task) Claims() []Attempt {
	last, ok := t.ownClaim()
	if !ok {
		return t.Log
	}
	all := append(slices.Clip(t.Log), last)
	return all[max(0, len(all)-AttemptsLogMax):]
}

// ownClaim returns the claim that is in the task's own fields alone: the one under way, or the
// one that completed it.
func (t *Task) ownClaim() (a Attempt, ok bool) {
	switch {
	case t.Status == StatusClaimed:
		return Attempt{WorkerID: t.WorkerID, Token: t.Token, ClaimedAt: t.ClaimedAt}, true
	case t.Status == StatusCompleted && t.Parent() == nil:
		return Attempt{WorkerID: t.WorkerID, Token: t.Token, ClaimedAt: t.ClaimedAt, EndedAt: t.CompletedAt, Outcome: OutcomeCompleted}, true
	}
	return Attempt{}, false
}

// Then has the further effects of completing a task, so that a repeat gets the same answer.
type Then struct {
	Submitted []FollowUp
	Claims    []ClaimRef
}

// FollowUp is one task of a Complete's Submit.
type FollowUp struct {
	ID       uint64
	Created  bool
	Replaced bool
}

// ClaimRef is one claim.
type ClaimRef struct{ TaskID, Token uint64 }

// Outcome says how a claim ended.
type Outcome uint8

// The outcomes. The numbers are in snapshots and never change.
const (
	OutcomeNone      Outcome = 0 // the claim has not ended
	OutcomeCompleted Outcome = 1
	OutcomeFailed    Outcome = 2
	OutcomeReleased  Outcome = 3
	OutcomeExpired   Outcome = 4
	OutcomeRetried   Outcome = 5
	OutcomeCancelled Outcome = 6
)

var outcomeNames = [...]string{"", "completed", "failed", "released", "expired", "retried", "cancelled"}

// String returns the API's name of the outcome, or "" for OutcomeNone.
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return ""
	}
	return outcomeNames[o]
}

// Attempt is one claim of a task.
type Attempt struct {
	WorkerID  string
	Token     uint64
	ClaimedAt int64
	EndedAt   int64 // 0 = not ended
	Outcome   Outcome
	Error     string
}

// GroupOf returns the group in which the task waits or is claimed, or "". A task that has
// ended or is blocked is in no group.
func GroupOf(t *Task) string {
	if t.Options == nil || t.Status.Ended() {
		return ""
	}
	if t.Status == StatusBlocked {
		return ""
	}
	return t.Options.Group
}

// BytesOfGroup estimates the memory of a group without its tasks.
func BytesOfGroup(name string) int64 { return groupBytes + int64(len(name)) }

// EndedByClaim reports whether the task ended with its last claim, as opposed to being
// cancelled or expiring while it waited.
func EndedByClaim(t *Task) bool {
	return t.Status.Ended() && (t.WorkerID != "" || t.CancelRequested)
}

// LastEnded returns the task's last claim that has ended, or one without an outcome.
func (t *Task) LastEnded() Attempt {
	if own, _ := t.ownClaim(); own.Outcome != OutcomeNone {
		return own
	}
	if n := len(t.Log); n > 0 {
		return t.Log[n-1]
	}
	return Attempt{}
}

// KeyName returns the name of the key in the indexes.
func KeyName(taskType, key string, ofType bool) string {
	if !ofType {
		return key
	}
	return taskType + keyMark + key
}

// keyMark separates type and key in the name of a type's own key. No key contains it, because
// it is a control character.
const keyMark = "\x00"

// KeyName returns the name of the task's key in the indexes, or "".
func (t *Task) KeyName() string {
	if t.Key == "" {
		return ""
	}
	return KeyName(t.Type, t.Key, t.Opts().KeyOfType)
}

// KeyName returns the name of the key that stays taken, or "".
func (g *Gone) KeyName() string {
	if g.Key == "" {
		return ""
	}
	return KeyName(g.Type, g.Key, g.KeyOfType)
}

// KeyUntil returns when the task's key becomes free whatever the task does, by T; 0 = not by time.
func (t *Task) KeyUntil() int64 {
	if ms := t.Opts().UniqueMS; ms != 0 {
		return t.CreatedAt + ms
	}
	return 0
}

// HoldsKey reports whether the task keeps its key taken, until its KeyUntil if there is one.
func HoldsKey(t *Task) bool {
	return t.Key != "" && !(t.Opts().UniqueActive && t.Status.Ended())
}
