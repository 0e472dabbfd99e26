package model

import (
	"slices"
	"strconv"
)

// The statuses, outcomes and refusals of the contract, as this package knows
// them.
const (
	Pending   = "pending"
	Scheduled = "scheduled"
	Blocked   = "blocked"
	Claimed   = "claimed"
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
	released  = "released"
	expired   = "expired"
	retried   = "retried"
)

// What a task and a claim get when nothing is said, and how long a claim
// request is remembered after its last claim has ended, a removed task after its
// removal.
const (
	attemptsByDefault = 3
	LeaseByDefault    = 30_000
	attemptsKept      = 20
	RememberedMS      = 10 * 60 * 1000
	DayMS             = 24 * 60 * 60 * 1000
	KeptByDefault     = DayMS
	failedKept        = 14 * DayMS
	LifeLevel         = 2 // from which on a cluster knows more than claims
	StepsLevel        = 4 // and from which on parents
)

// Task is one task. A version of it never changes: every change makes a new one,
// so that an answer can keep the one it was given.
type Task struct {
	ID       uint64
	Kind     string
	Body     string
	Opaque   bool
	Priority int32
	Max      int32 // 0: no limit
	Attempts int32
	Key      string
	LeaseMS  int64 // as submitted
	Options  Options

	Status    string
	RunAt     *moment // nil: it never waited
	Worker    string
	Token     uint64
	Seq       uint32 // of extends
	ClaimMS   int64  // how long the current claim lasts
	EndU      int64
	ClaimedAt int64

	CreatedAt, UpdatedAt, CompletedAt int64

	RemoveAt int64 // 0: never
	byClaim  bool  // it ended with a claim
	number   int32 // of the current claim, or of the last
	Asked    bool  // its cancel was
	Progress string

	Result string
	Binary bool // the result is no JSON
	Reason string
	Then   *Then // what its completion did beside, nil: nothing

	Log []Attempt // shared between versions, never changed

	Plan  *Plan  // of a parent, and of a step its parent's; nil: it is neither
	Of    uint64 // the parent of a step, else 0
	Final Ending // of a parent
}

// moment is a time that is known, or that is known to lie between two: the
// contract does not say what the hash of a jitter is. The first machine that
// tells it decides.
type moment struct {
	Least, Most int64
	known       bool
	at          int64
}

func exactly(at int64) *moment { return &moment{known: true, at: at} }

// Is reports whether the moment may be at, which it is from then on.
func (w *moment) Is(at int64) bool {
	if w == nil {
		return at == 0
	}
	if !w.known {
		w.known, w.at = true, at
		return w.Least <= at && at <= w.Most
	}
	return at == w.at
}

// Then is what a completion did beside.
type Then struct {
	Submitted []FollowUp
	Claims    []ClaimOf
}

// FollowUp is a task that a completion submitted, Created false if its key was taken.
type FollowUp struct {
	ID      uint64
	Created bool
}

// Attempt is one claim in a task's log.
type Attempt struct {
	Worker             string
	Token              uint64
	ClaimedAt, EndedAt int64
	Outcome            string // "" while it lives
	Reason             string
}

// remembered is a claim request and what it was answered.
type remembered struct {
	worker string
	choice Command // what chose the tasks; the rest of it is zero
	claims []ClaimOf
	EndedU int64 // when its last claim ended; -1 while one lives
}

// ClaimOf names a claim.
type ClaimOf struct{ ID, Token uint64 }

// Model is the queue, from the contract alone and as plain as can be: tasks in
// the order of submission, looked through from the first to the last.
type Model struct {
	U, T     int64
	Tasks    []*Task // by id-1; nil: deleted or removed
	oldest   int     // all before are gone or have completed: only where to begin looking
	Keys     map[string]uint64
	Requests map[string]*remembered
	byToken  map[uint64]*remembered // of live claims
	Tokens   uint64                 // given out
	removed  map[uint64]*removed    // by id
	Types    map[string]*taskType
	Defaults Settings // the server's
	Level    uint32
	Nodes    []string

	Schedules         map[string]*Kept
	Trail             []Told // all of it
	Index             uint64 // of the entry
	sub               uint32 // events of it
	trailBounds       Bounds // zero: nobody has set them
	LeastAge, MostAge int64  // that they ever had

	// Of the entry, or of the command, being applied.
	Begun   []Begun
	leaving []uint64 // ended, and not kept
	Unsure  []*Task  // versions whose moment is not known
	hint    *Hint    // what the machine did where the contract leaves it open
	picks   []uint64 // of hint, those that are left
}

// Hint is what the machine did where the contract allows several things.
type Hint struct {
	Picks   []uint64 // the tasks that it claimed
	Evicted int
	Ops     []Hint // of a batch
}

// Begun is a claim that an entry began.
type Begun struct {
	ID, Token uint64
	EndU      int64
}

// New returns an empty queue.
func New() *Model {
	return &Model{
		Keys: map[string]uint64{}, Requests: map[string]*remembered{}, byToken: map[uint64]*remembered{},
		removed: map[uint64]*removed{}, Types: map[string]*taskType{},
		Schedules: map[string]*Kept{}, LeastAge: DayMS, MostAge: DayMS,
	}
}

// Answer is what one command is answered.
type Answer struct {
	Code      string
	Why       string // a task cannot be claimed by its id
	Repeated  bool
	Gone      bool
	Task      *Task
	Submitted []submittedTask
	Claims    []claimedTask
	Known     bool // a completion's claim had been answered before
	Kind      *TypeSeen
	Results   []Answer
	FailedOp  int
	Evicted   int
	Expired   int
	Schedule  *Kept
	Created   bool
	Acted     []ActedOn
	Parent    *ParentSeen
}

type submittedTask struct {
	Task                *Task
	Created, Same, Gone bool
	Refused             bool // nobody could ever have claimed it
	Step                int  // nor the step in that place; -1: itself
}

type claimedTask struct {
	Task  *Task // nil: it is no more
	ID    uint64
	Token uint64
	Live  bool
}

// Entry applies the commands of an entry. hints has an element per command, or
// is nil.
func (m *Model) Entry(u, t int64, commands []*Command, hints []Hint) []Answer {
	m.U, m.T = max(m.U, u), max(m.T, t)
	m.Begun, m.Unsure, m.sub = nil, nil, 0
	answers := make([]Answer, len(commands))
	for i, c := range commands {
		m.hint = &Hint{}
		if hints != nil {
			m.hint = &hints[i]
		}
		answers[i] = m.command(c)
		m.showSteps(c, &answers[i])
		m.removeLeaving()
	}
	return answers
}

// Command applies one command.
func (m *Model) command(c *Command) Answer {
	switch c.Verb {
	case VerbBatch:
		return m.batch(c)
	case VerbExpire:
		return m.expire(c.Items)
	case VerbEvict:
		return m.evict(c.Bytes)
	case VerbSetType:
		return m.setType(c)
	case VerbSetDefaults:
		m.setDefaults(c)
	case VerbPatch:
		return m.patch(c)
	case VerbClaimTask:
		return m.claimTask(c)
	case VerbTick:
		m.tick()
	case VerbClaimEnd:
		return m.claimEnd(c)
	case VerbExtendEnd:
		return m.extendEnd(c)
	case VerbReleaseEnd:
		return m.releaseEnd(c)
	case VerbFinalize:
		return m.finalize(c)
	case VerbSetNode:
		if !slices.Contains(m.Nodes, c.Node) {
			m.Nodes = append(m.Nodes, c.Node)
			m.tell("node_set", nil, c.Node)
		}
	case VerbSetLevel:
		if c.Level > m.Level {
			if m.Level == 0 {
				m.Defaults = c.Settings
			}
			m.Level = c.Level
			m.tell("level_raised", nil, byWhom(strconv.FormatUint(uint64(c.Level), 10), c.By))
		}
	case VerbSetTrail:
		return m.setTrail(c.Bounds)
	case VerbTell:
		m.tell(c.Told, nil, byWhom(c.What, c.By))
	case VerbSetSchedule:
		return m.setSchedule(c.Schedule)
	case VerbDeleteSchedule:
		return m.deleteSchedule(c.Schedule.Name)
	case VerbRunSchedules:
		return m.runSlots(c.Runs)
	case VerbAct:
		return m.act(c)
	case VerbCheckpoint:
	default:
		return m.op(c, m.hint)
	}
	return Answer{}
}

// op applies what may be in a batch, too.
func (m *Model) op(c *Command, h *Hint) Answer {
	m.picks = h.Picks
	switch c.Verb {
	case VerbSubmit:
		return m.submit(c.Tasks)
	case VerbClaimNext:
		return m.claimNext(c)
	case VerbComplete:
		return m.complete(c)
	case VerbFail:
		return m.fail(c)
	case VerbExtend:
		return m.settle(c, "", func(t *Task) {
			m.lengthen(t, c.LeaseMS)
			if c.Progress != "" {
				t.Progress = c.Progress
			}
		})
	case VerbRelease:
		return m.settle(c, released, func(t *Task) {
			t.Attempts = max(t.Attempts-1, 0)
			m.giveBack(t, released, "", c.DelayMS)
		})
	case VerbRetry:
		return m.retry(c)
	case VerbCancel:
		return m.cancel(c.ID)
	default:
		return m.delete(c.ID)
	}
}

// Find returns the task, nil if there is none.
func (m *Model) Find(id uint64) *Task {
	if id == 0 || id > uint64(len(m.Tasks)) {
		return nil
	}
	return m.Tasks[id-1]
}

// change returns a new version of the task, in its place.
func (m *Model) change(t *Task) *Task {
	c := *t
	c.UpdatedAt = m.T
	m.Tasks[t.ID-1] = &c
	return &c
}

// Ended reports whether a task of the status has ended.
func Ended(status string) bool {
	return status == Completed || status == Failed || status == Cancelled
}
