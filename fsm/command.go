package fsm

// Stamp is the pair of clocks that an entry carries (docs/formats.md). Both are
// milliseconds; neither ever runs back in the state.
type Stamp struct {
	// U is the lease clock: milliseconds that the cluster has had a leader. It
	// starts at 0 with the cluster and stands still while there is no leader.
	U int64
	// T is the calendar: milliseconds since the Unix epoch.
	T int64
}

// Command is one mutation as the log holds it. Exactly the types of this file
// implement it. A command owns its byte slices: nobody changes them after it
// was proposed or decoded.
type Command interface{ kind() kind }

// kind is the command's type number in the log. Numbers are never reused.
type kind uint8

// Kinds 1 to 127 change tasks, 128 and above change the cluster's own records.
const (
	kindSubmit    kind = 1
	kindClaimNext kind = 2
	kindClaimTask kind = 3
	kindComplete  kind = 4
	kindFail      kind = 5
	kindExtend    kind = 6
	kindRelease   kind = 7
	kindRetry     kind = 8
	kindDelete    kind = 9
	kindExpire    kind = 10
	kindCancel    kind = 11
	kindPatch     kind = 12
	kindSetType   kind = 13
	kindEvict     kind = 14
	kindBatch     kind = 15
	kindAct       kind = 16

	kindClaimFinalization   kind = 17
	kindExtendFinalization  kind = 18
	kindReleaseFinalization kind = 19
	kindFinalize            kind = 20

	kindTick       kind = 128
	kindCheckpoint kind = 129
	kindSetNode    kind = 130
	kindRemoveNode kind = 131
	kindSetLevel   kind = 132

	kindSetSchedule    kind = 133
	kindDeleteSchedule kind = 134
	kindRunSchedules   kind = 135
	kindSetTrail       kind = 136
	kindTell           kind = 137
	kindRestoreBegin   kind = 138
	kindRestoreChunk   kind = 139
	kindRestoreEnd     kind = 140

	kindSetJoinToken    kind = 141
	kindDeleteJoinToken kind = 142
	kindUseJoinToken    kind = 143
)

// Submit adds tasks, in order, all in one step. Result.Submitted has one
// element per task. A task whose key is taken is not added; the result names
// the task that has the key.
type Submit struct {
	Tasks []NewTask // 1 to 10,000
}

// NewTask is a task as submitted. The caller has validated every field against
// the contract; Apply only resolves defaults.
type NewTask struct {
	Type        string // never empty
	Params      []byte // JSON as given; nil when Payload is set
	Payload     []byte // opaque; nil when Params is set
	Priority    int32
	MaxAttempts int32  // 0: no limit. DefaultAttempts: the default
	Key         string // idempotency key, "" = none
	LeaseMS     int64  // 0: the type's, else the default

	// Not claimable before RunAt, by T, or DelayMS after the submit; 0 = at
	// once. At most one of them is set.
	RunAt   int64
	DelayMS int64

	ExpiresAt    int64    // by T: not started by then, it fails; 0 = never
	Backoff      *Backoff // nil: the type's
	RetentionMS  int64    // 0: the type's, else the default; KeepForever; KeepNone
	Labels       []Label  // sorted by name, each name once, at most 16
	Group        string   // "" = none
	UniqueActive bool     // the key is taken only until the task ends
	KeyOfType    bool     // the key is taken among the tasks of the type alone

	// Traceparent is the W3C trace context of the submit, "" = none. It is kept
	// with the task and handed to its workers; the state does nothing with it.
	Traceparent string

	// Parent makes it a parent, with its steps; nil = it has none. Then it has no
	// RunAt, DelayMS, ExpiresAt and Group, and may have neither Params nor
	// Payload.
	Parent *NewParent
}

// NewParent is what a task with steps is submitted with. The caller has seen
// that the names differ and that the dependencies have no cycle.
type NewParent struct {
	Steps    []NewStep // 1 to 1,000
	ByClaim  bool      // as in Plan
	Continue bool      // as in Plan
}

// CountTasks returns how many tasks a submit of these adds at most, steps counted.
func CountTasks(tasks []NewTask) int {
	n := len(tasks)
	for i := range tasks {
		if p := tasks[i].Parent; p != nil {
			n += len(p.Steps)
		}
	}
	return n
}

// NewStep is one step as submitted. Its task has no Key, RetentionMS and Parent.
type NewStep struct {
	Name      string
	DependsOn []uint16 // places in NewParent.Steps, ascending, each once; nil = none
	Task      NewTask
}

// DefaultAttempts in NewTask.MaxAttempts stands for the default, which Apply
// resolves to the type's, else to 3.
const DefaultAttempts = -1

// Special values of RetentionMS.
const (
	KeepForever = -1 // until it is deleted
	KeepNone    = -2 // gone as soon as it ends
)

// Label is one label of a task.
type Label struct{ Name, Value string }

// Backoff says how long a task waits after its attempt failed or expired:
// min(MaxMS, InitialMS * factor^(attempts-1)), less a share of up to jitter.
// Factor and Jitter are in millionths: floating point is not the same on every
// machine. A *Backoff is never changed.
type Backoff struct {
	InitialMS int64 // 1 or more
	MaxMS     int64 // InitialMS or more
	Factor    int64 // 1,000,000 or more
	Jitter    int64 // 0 to 1,000,000
}

// SortBy is what a ClaimNext goes by.
type SortBy uint8

// The orders of ClaimNext. SortPriority takes the highest priority first (the
// lowest if Ascending), equal ones oldest first. SortCreatedAt takes the
// newest first, or the oldest if Ascending. Oldest means lowest id. SortRandom
// takes any; it needs Types.
const (
	SortPriority SortBy = iota
	SortCreatedAt
	SortRandom
)

// ClaimNext claims up to Limit ready tasks. Result.Claims has them, possibly
// none, in which case nothing is remembered of the request.
type ClaimNext struct {
	WorkerID  string
	Types     []string // nil = any; sorted, without duplicates
	SortBy    SortBy
	Ascending bool
	Limit     int32  // 1 to 1,000
	LeaseMS   int64  // 0: the task's own, else the type's, else the default
	RequestID string // claim_request_id, "" = none
	// MoreAttempts takes only tasks with more attempts left than this; tasks
	// without a limit always have. 0 = any; 0 to AttemptsLeftMax. It needs Types.
	MoreAttempts int32
}

// AttemptsLeftMax bounds ClaimNext.MoreAttempts.
const AttemptsLeftMax = 1000

// ClaimTask claims the task ID for WorkerID, or extends the claim that
// WorkerID has on it.
type ClaimTask struct {
	ID        uint64
	WorkerID  string
	LeaseMS   int64 // as in ClaimNext
	RequestID string
}

// Hold names a claim as its worker does. Token 0 means that the worker sent
// none: then only WorkerID is checked.
type Hold struct {
	ID       uint64
	WorkerID string
	Token    uint64
}

// Complete ends the task as completed. At most one of Result (JSON as given)
// and ResultPayload (opaque) is set. In the same step it submits Submit and then
// claims Claim, which may get one of them. Result.Submitted and Result.Claims
// have what became of these.
type Complete struct {
	Hold
	Result        []byte
	ResultPayload []byte
	Submit        []NewTask
	Claim         *ClaimNext // nil = none
}

// Fail ends the attempt: the task becomes pending when it has attempts left,
// else failed.
type Fail struct {
	Hold
	Error string // at most 16 KiB, cut by the caller
	// RetryInMS, if RetryIn is set, is how long the task waits in place of its
	// backoff.
	RetryIn   bool
	RetryInMS int64
	Permanent bool // failed, whatever attempts are left
}

// Extend moves the lease's end to LeaseMS (0: the claim's own length) from
// now, never to an earlier time.
type Extend struct {
	Hold
	LeaseMS  int64
	Progress []byte // JSON as given; nil leaves the last one
}

// Release gives the task back; the attempt is not counted. It is not claimable
// for DelayMS.
type Release struct {
	Hold
	DelayMS int64
}

// Retry makes a failed, cancelled or claimed task pending. AddAttempts is
// added to a limited MaxAttempts first. Token 0 means none was sent. Of a parent
// it retries the steps that failed or were cancelled, all of them or none.
type Retry struct {
	ID          uint64
	Token       uint64
	AddAttempts int32
}

// Delete removes an ended task and frees its key. A parent takes its steps along.
type Delete struct{ ID uint64 }

// Cancel ends a task that is not claimed as cancelled; of a claimed one it is
// noted that this was asked. Of a parent it does so with each step, and ends the
// parent with the last.
type Cancel struct{ ID uint64 }

// Patch changes fields of a task that is not claimed and has not ended: those
// whose Set flag is true.
type Patch struct {
	ID          uint64
	SetPriority bool
	Priority    int32
	SetRunAt    bool
	RunAt       int64 // by T; 0 = at once
	SetLabels   bool
	Labels      []Label // as in NewTask
}

// SetType changes the settings of a task type: those whose bit is in Set. The
// zero value of a setting clears it.
type SetType struct {
	Type     string
	Set      TypeFields
	Settings TypeSettings
	By       string // the operator's key, for the trail; "" = open mode
}

// TypeFields is a set of the fields of TypeSettings.
type TypeFields uint32

// The fields. The numbers are in the log and never change.
const (
	TypePaused TypeFields = 1 << iota
	TypeMaxClaimed
	TypeRateLimit
	TypeLease
	TypeMaxAttempts
	TypeBackoff
	TypeRetention
	typeFieldsAll TypeFields = 1<<iota - 1
)

// TypeSettings are the settings of a task type. Pause and limits concern claims
// only: what is claimed goes on.
type TypeSettings struct {
	Paused     bool
	MaxClaimed int32 // claims at a time; 0 = no limit
	// RateLimit is in millionths of a claim per second; 0 = no limit.
	RateLimit int64
	// Defaults of its tasks.
	LeaseMS     int64    // 0: the server's
	LimitSet    bool     // MaxAttempts is set
	MaxAttempts int32    // 0 = no limit
	Backoff     *Backoff // nil: none
	RetentionMS int64    // as in NewTask
}

// Evict removes ended tasks, a bounded number: the oldest completed and
// cancelled ones, then the oldest failed ones, until the ended tasks take no
// more than Bytes by the machine's estimate.
type Evict struct{ Bytes int64 }

// Batch applies Ops in order, in one step; if Atomic, all of them or none. Ops
// are Submit of one task, ClaimNext, Complete, Fail, Extend, Release, Retry,
// Cancel and Delete. Result.Results has one element per op; of an atomic batch
// that was refused, Result.Code and FailedOp say why. A claim that finds nothing
// is such a refusal. All ops share the bound of one answer: a claim that finds
// it full takes nothing, and other tasks come without their data.
type Batch struct {
	Atomic bool
	Ops    []Command // 1 to 1,000
}

// Action is what an Act does with each task.
type Action uint8

// The actions. The numbers are in the log and never change.
const (
	ActionRetry  Action = 1
	ActionCancel Action = 2
	ActionDelete Action = 3
)

// Act does Action with those of the tasks that still match Filter when it is
// applied, in the order of IDs, each as the command of its own would. What that
// refuses is left alone. Result.Acted is how many it was done with.
type Act struct {
	Action      Action
	IDs         []uint64 // 1 to 1,000; ascending
	Filter      Filter
	AddAttempts int32 // of ActionRetry, as in Retry
}

// ClaimFinalization claims the finalization of the parent ID for ProcessorID, or
// extends the claim that it has. It is accepted whatever the outcome, which is in
// Result.Parent.
type ClaimFinalization struct {
	ID          uint64
	ProcessorID string
	TimeoutMS   int64 // 1 s to 3,600 s
}

// ExtendFinalization lets the claim of ProcessorID last TimeoutMS (0: its own
// length) from now, or longer if it does already.
type ExtendFinalization struct {
	ID          uint64
	ProcessorID string
	TimeoutMS   int64
}

// ReleaseFinalization gives back the claim of ProcessorID.
type ReleaseFinalization struct {
	ID          uint64
	ProcessorID string
}

// Finalize ends the parent whose steps have ended, as completed or, if Failed, as
// failed. A claim is not needed, but another's stands against it. Token 0 means
// that none was sent.
type Finalize struct {
	ID          uint64
	ProcessorID string
	Token       uint64
	Failed      bool
	Result      []byte // JSON as given; nil = none
	Error       string // of Failed
}

// SetSchedule makes the schedule, or replaces the one of its name. Result.Created
// says which; Result.Schedule is what became of it. CodeInvalidRequest if there
// would be more than 10,000.
type SetSchedule struct {
	Schedule Schedule
	By       string // as in SetType
}

// DeleteSchedule removes the schedule. CodeScheduleNotFound if there is none.
type DeleteSchedule struct {
	Name string
	By   string // as in SetType
}

// RunSchedules does what slots of schedules are due. An item changes nothing
// unless its schedule still has that version and waits for that slot, which has
// come by T: so duplicates and items of a deposed leader are harmless, and each
// slot is done once. Result.Submitted has the tasks that it made, in the order
// of their items.
type RunSchedules struct{ Items []ScheduleRun }

// ScheduleRun is one slot of one schedule. The leader has computed Next: time
// zones are no matter of the state.
type ScheduleRun struct {
	Name    string
	Version uint64
	Slot    int64 // by T: the schedule's NextRunAt
	Next    int64 // by T, after Slot, else the item changes nothing; 0 = never again
	// Skip moves on to Next without a task: the slot was missed.
	Skip bool
}

// SetTrail bounds what is kept of the trail; what is over it goes by whole
// chunks, with this entry and, if that is very much, those that follow.
type SetTrail struct {
	Bytes int64 // 1 MiB to 64 GiB
	AgeMS int64 // 1 minute or more
}

// Expire ends the claims whose lease has run out. An item changes nothing
// unless its task is still claimed with that token and that sequence number:
// so duplicates, items of a deposed leader and items that crossed an extend
// are harmless.
type Expire struct{ Items []Lease }

// Lease identifies one state of one claim's lease.
type Lease struct {
	TaskID uint64
	Token  uint64
	// Seq grows with every extend of the claim, from 1.
	Seq uint32
	// EndU is when the lease ends by the lease clock. It is not part of the
	// command; Apply and Machine.Leases fill it in for the leader's timers.
	EndU int64
}

// Tick moves the clocks on and does what is due, a bounded amount of it.
type Tick struct{}

// Checkpoint changes nothing: each node notes the hash of its state at the
// entry's index, and the leader compares them.
type Checkpoint struct{}

// SetNode records what the cluster knows of a node.
type SetNode struct{ Node NodeRecord }

// RemoveNode forgets a node.
type RemoveNode struct{ UUID string }

// SetLevel raises the feature level. A lower level than the current changes
// nothing.
type SetLevel struct {
	Level uint32
	By    string // as in SetType; of a Level that knows it
}

// Tell tells of an operator's act in the trail and changes nothing else. A Kind
// that is not one of EventMemberAdded to EventKeysReloaded or EventBackupBegun to EventRestoreBroken is not told.
type Tell struct {
	Kind EventKind
	By   string // as in SetType
	What string // what was done with what, in a few words
}

// RestoreBegin begins a restore: the chunks that follow are a snapshot, as Graft
// gives it, that RestoreEnd makes the state. Any command but these three gives up
// what has been taken, so that nothing is left of a restore whose leader died.
// CodeNotEmpty if the state holds anything that a restore would destroy.
type RestoreBegin struct {
	Bytes uint64 // of the whole snapshot
}

// RestoreChunk takes the next bytes of the snapshot. CodeInvalidRequest, and the
// restore is given up, if they are not the next ones, or no part of a snapshot.
type RestoreChunk struct {
	Begin  uint64 // index of the entry of the RestoreBegin
	Offset uint64 // of Data in the snapshot
	Data   []byte
}

// RestoreEnd makes the snapshot that was taken the state, if all of it is there, is
// verified as ReadSnapshot does, and follows the state's clocks, counters and level.
// Else it changes nothing: CodeInvalidRequest.
type RestoreEnd struct {
	Begin uint64 // as in RestoreChunk
}

// SetJoinToken makes a join token that lives LifeMS from now, by T. Result.JoinToken
// is that token. One of the same hash that is there stays as it is: Repeated.
// CodeMembershipRefused if there are too many, or it is out of bounds.
type SetJoinToken struct {
	Hash   []byte // SHA-256 of the token
	LifeMS int64  // 1 to JoinTokenLifeMax
	Uses   int32  // 1 to JoinTokenUsesMax
	By     string // as in SetType
}

// DeleteJoinToken revokes a join token. CodeMembershipRefused if there is none of
// that id.
type DeleteJoinToken struct {
	ID string // as JoinToken.ID
	By string // as in SetType
}

// UseJoinToken counts that the node comes by the token, once for each UUID.
// CodeMembershipRefused if no such token lives, or others have used it up.
type UseJoinToken struct {
	Hash   []byte // SHA-256 of the token
	UUID   string
	NodeID string // for the trail
}

func (Submit) kind() kind     { return kindSubmit }
func (ClaimNext) kind() kind  { return kindClaimNext }
func (ClaimTask) kind() kind  { return kindClaimTask }
func (Complete) kind() kind   { return kindComplete }
func (Fail) kind() kind       { return kindFail }
func (Extend) kind() kind     { return kindExtend }
func (Release) kind() kind    { return kindRelease }
func (Retry) kind() kind      { return kindRetry }
func (Delete) kind() kind     { return kindDelete }
func (Expire) kind() kind     { return kindExpire }
func (Cancel) kind() kind     { return kindCancel }
func (Patch) kind() kind      { return kindPatch }
func (SetType) kind() kind    { return kindSetType }
func (Evict) kind() kind      { return kindEvict }
func (Batch) kind() kind      { return kindBatch }
func (Act) kind() kind        { return kindAct }
func (Tick) kind() kind       { return kindTick }
func (Checkpoint) kind() kind { return kindCheckpoint }
func (SetNode) kind() kind    { return kindSetNode }
func (RemoveNode) kind() kind { return kindRemoveNode }
func (SetLevel) kind() kind   { return kindSetLevel }

func (ClaimFinalization) kind() kind   { return kindClaimFinalization }
func (ExtendFinalization) kind() kind  { return kindExtendFinalization }
func (ReleaseFinalization) kind() kind { return kindReleaseFinalization }
func (Finalize) kind() kind            { return kindFinalize }

func (SetSchedule) kind() kind    { return kindSetSchedule }
func (DeleteSchedule) kind() kind { return kindDeleteSchedule }
func (RunSchedules) kind() kind   { return kindRunSchedules }
func (SetTrail) kind() kind       { return kindSetTrail }
func (Tell) kind() kind           { return kindTell }
func (RestoreBegin) kind() kind   { return kindRestoreBegin }
func (RestoreChunk) kind() kind   { return kindRestoreChunk }
func (RestoreEnd) kind() kind     { return kindRestoreEnd }

func (SetJoinToken) kind() kind    { return kindSetJoinToken }
func (DeleteJoinToken) kind() kind { return kindDeleteJoinToken }
func (UseJoinToken) kind() kind    { return kindUseJoinToken }
