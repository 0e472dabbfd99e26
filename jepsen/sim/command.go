package sim

import "slices"

// verb is what a command does.
type verb uint8

const (
	verbSubmit verb = iota
	verbClaimNext
	verbClaimTask
	verbComplete
	verbFail
	verbExtend
	verbRelease
	verbRetry
	verbDelete
	verbCancel
	verbPatch
	verbSetType
	verbBatch
	verbAct
	verbSetSchedule
	verbDeleteSchedule
	verbEvict
	verbExpire
	verbTick
	verbCheckpoint
	verbSetNode
	verbSetLevel
	verbRunSchedules
	verbSetTrail
	verbClaimEnd   // the finalization of a parent
	verbExtendEnd  // the claim of it
	verbReleaseEnd // the claim of it
	verbFinalize
	verbTell // of an operator's act
	verbSetDefaults
)

var verbNames = [...]string{
	"submit", "claim next", "claim", "complete", "fail", "extend", "release", "retry", "delete", "cancel", "patch", "set type", "batch", "act on", "set schedule", "delete schedule",
	"evict", "expire", "tick", "checkpoint", "set node", "set level", "run schedules", "set trail",
	"claim finalization", "extend finalization", "release finalization", "finalize", "tell of", "set defaults",
}

func (v verb) String() string { return verbNames[v] }

// command is one mutation, in words of this package: what the model reads and
// what is encoded for the machine. It never changes once it was made.
type command struct {
	verb verb

	tasks []newTask // submit; complete: the follow-ups

	id      uint64 // all that name a task
	worker  string // of a finalization: the processor
	token   uint64 // 0: none was sent
	leaseMS int64
	request string // claim_request_id

	types     []string // claim next: nil = any; sorted
	byCreated bool
	random    bool
	ascending bool
	limit     int
	more      int32 // only tasks with more attempts left than this

	result string // complete, finalize
	opaque bool   // the result is no JSON
	next   *command

	timeoutMS int64 // claim and extend of a finalization; 0 of an extend: as long as the claim
	failed    bool  // finalize: as failed

	reason    string // fail, finalize
	permanent bool
	retryIn   bool  // delayMS is sent
	delayMS   int64 // fail: retry_in_ms; release

	progress string // extend
	add      int32  // retry

	set patched // patch

	kind     string     // set type
	changes  typeChange // set defaults, too
	settings settings

	atomic bool // batch
	ops    []*command

	bytes int64 // evict

	items []leaseItem // expire

	node  string // set node
	level uint32 // set level

	by   string // set type, set defaults, set level, tell: the operator's key
	told string // tell: the event
	what string // tell

	action verb // act: retry (with add), cancel or delete
	ids    []uint64
	filter filter

	schedule *schedule // set schedule; delete schedule: only its name
	runs     []slotRun // run schedules
	bounds   bounds    // set trail
}

// newTask is a task as submitted.
type newTask struct {
	kind     string
	body     string
	opaque   bool
	priority int32
	max      int32 // -1: the default
	key      string
	leaseMS  int64
	runAt    int64 // by T
	delayMS  int64
	parent   *plan // nil: it has no steps
	options
}

// plan is the steps of a parent. It never changes: the parent's task and those of
// its steps share it.
type plan struct {
	steps   []planned
	byClaim bool // a processor ends the parent
	goesOn  bool // a step that does not complete takes along only those that depend on it
}

// planned is one step of a plan. Its place is that in the plan.
type planned struct {
	name string
	on   []int // places, ascending
	task newTask
}

// options are what few tasks are submitted with.
type options struct {
	expiresAt int64    // by T; 0: never
	backoff   *backoff // nil: none
	keepMS    int64    // retention; 0: nothing was said
	labels    []label  // sorted
	group     string
	active    bool // unique: active
	ofKind    bool // its key is taken among the tasks of its type alone
}

// label is one label.
type label struct{ name, value string }

// backoff is how long a task waits after its attempt has failed. Factor and
// jitter are in millionths.
type backoff struct{ initial, most, factor, jitter int64 }

// Special values of options.keepMS and settings.keepMS.
const (
	keepForever = -1
	keepNone    = -2
)

// patched is what a patch changes: what is not nil.
type patched struct {
	priority *int32
	runAt    *int64
	labels   *[]label
}

// typeChange is which settings a set type changes.
type typeChange struct{ paused, claims, rate, lease, attempts, backoff, keep bool }

// settings are those of a task type; zero: not set.
type settings struct {
	paused  bool
	claims  int32 // max_claimed
	rate    int64 // millionths of a claim per second
	leaseMS int64
	limited bool // max is set
	max     int32
	backoff *backoff
	keepMS  int64
}

// leaseItem is one lease of an expire.
type leaseItem struct {
	id, token uint64
	seq       uint32
}

func (o *options) equal(p *options) bool {
	return o.expiresAt == p.expiresAt && sameBackoff(o.backoff, p.backoff) && o.keepMS == p.keepMS &&
		slices.Equal(o.labels, p.labels) && o.group == p.group && o.active == p.active && o.ofKind == p.ofKind
}

func (s *settings) equal(p *settings) bool {
	return s.paused == p.paused && s.claims == p.claims && s.rate == p.rate && s.leaseMS == p.leaseMS &&
		s.limited == p.limited && s.max == p.max && sameBackoff(s.backoff, p.backoff) && s.keepMS == p.keepMS
}

func sameBackoff(a, b *backoff) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}
