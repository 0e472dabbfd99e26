package model

import "slices"

// Verb is what a command does.
type Verb uint8

// The verbs.
const (
	VerbSubmit Verb = iota
	VerbClaimNext
	VerbClaimTask
	VerbComplete
	VerbFail
	VerbExtend
	VerbRelease
	VerbRetry
	VerbDelete
	VerbCancel
	VerbPatch
	VerbSetType
	VerbBatch
	VerbAct
	VerbSetSchedule
	VerbDeleteSchedule
	VerbEvict
	VerbExpire
	VerbTick
	VerbCheckpoint
	VerbSetNode
	VerbSetLevel
	VerbRunSchedules
	VerbSetTrail
	VerbClaimEnd   // the finalization of a parent
	VerbExtendEnd  // the claim of it
	VerbReleaseEnd // the claim of it
	VerbFinalize
	VerbTell // of an operator's act
	VerbSetDefaults
)

var verbNames = [...]string{
	"submit", "claim next", "claim", "complete", "fail", "extend", "release", "retry", "delete", "cancel", "patch", "set type", "batch", "act on", "set schedule", "delete schedule",
	"evict", "expire", "tick", "checkpoint", "set node", "set level", "run schedules", "set trail",
	"claim finalization", "extend finalization", "release finalization", "finalize", "tell of", "set defaults",
}

func (v Verb) String() string { return verbNames[v] }

// Command is one mutation, in words of this package: what the model reads and
// what is encoded for the machine. It never changes once it was made.
type Command struct {
	Verb Verb

	Tasks []NewTask // submit; complete: the follow-ups

	ID      uint64 // all that name a task
	Worker  string // of a finalization: the processor
	Token   uint64 // 0: none was sent
	LeaseMS int64
	Request string // claim_request_id

	Types     []string // claim next: nil = any; sorted
	ByCreated bool
	Random    bool
	Ascending bool
	Limit     int
	More      int32 // only tasks with more attempts left than this

	Result string // complete, finalize
	Opaque bool   // the result is no JSON
	Next   *Command

	TimeoutMS int64 // claim and extend of a finalization; 0 of an extend: as long as the claim
	Failed    bool  // finalize: as failed

	Reason    string // fail, finalize
	Permanent bool
	RetryIn   bool  // delayMS is sent
	DelayMS   int64 // fail: retry_in_ms; release

	Progress string // extend
	Add      int32  // retry

	Set patched // patch

	Kind     string     // set type
	Changes  TypeChange // set defaults, too
	Settings Settings   // the same; set level: the server's defaults

	Atomic bool // batch
	Ops    []*Command

	Bytes int64 // evict

	Items []LeaseItem // expire

	Node  string // set node
	Level uint32 // set level

	By   string // set type, set defaults, set level, tell: the operator's key
	Told string // tell: the event
	What string // tell

	Action Verb // act: retry (with add), cancel or delete
	IDs    []uint64
	Filter Filter

	Schedule *Schedule // set schedule; delete schedule: only its name
	Runs     []SlotRun // run schedules
	Bounds   Bounds    // set trail
}

// NewTask is a task as submitted.
type NewTask struct {
	Kind     string
	Body     string
	Opaque   bool
	Priority int32
	Max      int32 // -1: the default
	Key      string
	LeaseMS  int64
	RunAt    int64 // by T
	DelayMS  int64
	Parent   *Plan // nil: it has no steps
	Options
}

// Plan is the steps of a parent. It never changes: the parent's task and those of
// its steps share it.
type Plan struct {
	Steps   []Planned
	ByClaim bool // a processor ends the parent
	GoesOn  bool // a step that does not complete takes along only those that depend on it
}

// Planned is one step of a plan. Its place is that in the plan.
type Planned struct {
	Name string
	On   []int // places, ascending
	Task NewTask
}

// Options are what few tasks are submitted with.
type Options struct {
	ExpiresAt int64    // by T; 0: never
	Backoff   *Backoff // nil: none
	KeepMS    int64    // retention; 0: nothing was said
	Labels    []Label  // sorted
	Group     string
	Active    bool // unique: active
	OfKind    bool // its key is taken among the tasks of its type alone
}

// Label is one label.
type Label struct{ Name, Value string }

// Backoff is how long a task waits after its attempt has failed. Factor and
// jitter are in millionths.
type Backoff struct{ Initial, Most, Factor, Jitter int64 }

// Special values of options.keepMS and settings.keepMS.
const (
	KeepForever = -1
	KeepNone    = -2
)

// patched is what a patch changes: what is not nil.
type patched struct {
	Priority *int32
	RunAt    *int64
	Labels   *[]Label
}

// TypeChange is which settings a set type changes.
type TypeChange struct{ Paused, Claims, Rate, Lease, Attempts, Backoff, Keep bool }

// Settings are those of a task type; zero: not set.
type Settings struct {
	Paused  bool
	Claims  int32 // max_claimed
	Rate    int64 // millionths of a claim per second
	LeaseMS int64
	Limited bool // max is set
	Max     int32
	Backoff *Backoff
	KeepMS  int64
}

// LeaseItem is one lease of an expire.
type LeaseItem struct {
	ID, Token uint64
	Seq       uint32
}

// Equal reports whether both say the same.
func (o *Options) Equal(p *Options) bool {
	return o.ExpiresAt == p.ExpiresAt && sameBackoff(o.Backoff, p.Backoff) && o.KeepMS == p.KeepMS &&
		slices.Equal(o.Labels, p.Labels) && o.Group == p.Group && o.Active == p.Active && o.OfKind == p.OfKind
}

// Equal reports whether both say the same.
func (s *Settings) Equal(p *Settings) bool {
	return s.Paused == p.Paused && s.Claims == p.Claims && s.Rate == p.Rate && s.LeaseMS == p.LeaseMS &&
		s.Limited == p.Limited && s.Max == p.Max && sameBackoff(s.Backoff, p.Backoff) && s.KeepMS == p.KeepMS
}

func sameBackoff(a, b *Backoff) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}
