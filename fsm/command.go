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
	kindSubmit     kind = 1
	kindClaimNext  kind = 2
	kindClaimTask  kind = 3
	kindComplete   kind = 4
	kindFail       kind = 5
	kindExtend     kind = 6
	kindRelease    kind = 7
	kindRetry      kind = 8
	kindDelete     kind = 9
	kindExpire     kind = 10
	kindTick       kind = 128
	kindCheckpoint kind = 129
	kindSetNode    kind = 130
	kindRemoveNode kind = 131
	kindSetLevel   kind = 132
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
	LeaseMS     int64  // 0: the default
}

// DefaultAttempts in NewTask.MaxAttempts stands for the default, which Apply
// resolves to 3.
const DefaultAttempts = -1

// SortBy is what a ClaimNext goes by.
type SortBy uint8

// The orders of ClaimNext. SortPriority takes the highest priority first (the
// lowest if Ascending), equal ones oldest first. SortCreatedAt takes the
// newest first, or the oldest if Ascending. Oldest means lowest id.
const (
	SortPriority SortBy = iota
	SortCreatedAt
)

// ClaimNext claims up to Limit ready tasks. Result.Claims has them, possibly
// none, in which case nothing is remembered of the request.
type ClaimNext struct {
	WorkerID  string
	Types     []string // nil = any; sorted, without duplicates
	SortBy    SortBy
	Ascending bool
	Limit     int32  // 1 to 1,000
	LeaseMS   int64  // 0: the task's own, else the default
	RequestID string // claim_request_id, "" = none
}

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
// and ResultPayload (opaque) is set.
type Complete struct {
	Hold
	Result        []byte
	ResultPayload []byte
}

// Fail ends the attempt: the task becomes pending when it has attempts left,
// else failed.
type Fail struct {
	Hold
	Error string // at most 16 KiB, cut by the caller
}

// Extend moves the lease's end to LeaseMS (0: the claim's own length) from
// now, never to an earlier time.
type Extend struct {
	Hold
	LeaseMS int64
}

// Release gives the task back; the attempt is not counted.
type Release struct{ Hold }

// Retry makes a failed, cancelled or claimed task pending. AddAttempts is
// added to a limited MaxAttempts first. Token 0 means none was sent.
type Retry struct {
	ID          uint64
	Token       uint64
	AddAttempts int32
}

// Delete removes an ended task and frees its key.
type Delete struct{ ID uint64 }

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
type SetLevel struct{ Level uint32 }

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
func (Tick) kind() kind       { return kindTick }
func (Checkpoint) kind() kind { return kindCheckpoint }
func (SetNode) kind() kind    { return kindSetNode }
func (RemoveNode) kind() kind { return kindRemoveNode }
func (SetLevel) kind() kind   { return kindSetLevel }
