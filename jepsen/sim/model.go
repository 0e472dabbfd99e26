package sim

import (
	"slices"
	"strconv"
)

// The statuses, outcomes and refusals of the contract, as this package knows
// them.
const (
	pending   = "pending"
	scheduled = "scheduled"
	blocked   = "blocked"
	claimed   = "claimed"
	running   = "running"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
	released  = "released"
	expired   = "expired"
	retried   = "retried"
)

// What a task and a claim get when nothing is said, and how long a claim
// request is remembered after its last claim has ended, a removed task after its
// removal.
const (
	attemptsByDefault = 3
	leaseByDefault    = 30_000
	attemptsKept      = 20
	rememberedMS      = 10 * 60 * 1000
	dayMS             = 24 * 60 * 60 * 1000
	keptByDefault     = dayMS
	failedKept        = 14 * dayMS
	lifeLevel         = 2 // from which on a cluster knows more than claims
	stepsLevel        = 4 // and from which on parents
)

// task is one task. A version of it never changes: every change makes a new one,
// so that an answer can keep the one it was given.
type task struct {
	id       uint64
	kind     string
	body     string
	opaque   bool
	priority int32
	max      int32 // 0: no limit
	attempts int32
	key      string
	leaseMS  int64 // as submitted
	options  options

	status    string
	runAt     *moment // nil: it never waited
	worker    string
	token     uint64
	seq       uint32 // of extends
	claimMS   int64  // how long the current claim lasts
	endU      int64
	claimedAt int64

	createdAt, updatedAt, completedAt int64

	removeAt int64 // 0: never
	byClaim  bool  // it ended with a claim
	number   int32 // of the current claim, or of the last
	asked    bool  // its cancel was
	progress string

	result string
	binary bool // the result is no JSON
	reason string
	then   *then // what its completion did beside, nil: nothing

	log []attempt // shared between versions, never changed

	plan  *plan  // of a parent, and of a step its parent's; nil: it is neither
	of    uint64 // the parent of a step, else 0
	final ending // of a parent
}

// moment is a time that is known, or that is known to lie between two: the
// contract does not say what the hash of a jitter is. The first machine that
// tells it decides.
type moment struct {
	least, most int64
	known       bool
	at          int64
}

func exactly(at int64) *moment { return &moment{known: true, at: at} }

// is reports whether the moment may be at, which it is from then on.
func (w *moment) is(at int64) bool {
	if w == nil {
		return at == 0
	}
	if !w.known {
		w.known, w.at = true, at
		return w.least <= at && at <= w.most
	}
	return at == w.at
}

// then is what a completion did beside.
type then struct {
	submitted []followUp
	claims    []claimOf
}

type followUp struct {
	id      uint64
	created bool
}

// attempt is one claim in a task's log.
type attempt struct {
	worker             string
	token              uint64
	claimedAt, endedAt int64
	outcome            string // "" while it lives
	reason             string
}

// remembered is a claim request and what it was answered.
type remembered struct {
	worker string
	choice command // what chose the tasks; the rest of it is zero
	claims []claimOf
	endedU int64 // when its last claim ended; -1 while one lives
}

// claimOf names a claim.
type claimOf struct{ id, token uint64 }

// model is the queue, from the contract alone and as plain as can be: tasks in
// the order of submission, looked through from the first to the last.
type model struct {
	u, t     int64
	tasks    []*task // by id-1; nil: deleted or removed
	oldest   int     // all before are gone or have completed: only where to begin looking
	keys     map[string]uint64
	requests map[string]*remembered
	byToken  map[uint64]*remembered // of live claims
	tokens   uint64                 // given out
	removed  map[uint64]*removed    // by id
	types    map[string]*taskType
	defaults settings // the server's
	level    uint32
	nodes    []string

	schedules         map[string]*kept
	trail             []told // all of it
	index             uint64 // of the entry
	sub               uint32 // events of it
	trailBounds       bounds // zero: nobody has set them
	leastAge, mostAge int64  // that they ever had

	// Of the entry, or of the command, being applied.
	begun   []begun
	leaving []uint64 // ended, and not kept
	unsure  []*task  // versions whose moment is not known
	hint    *hint    // what the machine did where the contract leaves it open
	picks   []uint64 // of hint, those that are left
}

// hint is what the machine did where the contract allows several things.
type hint struct {
	picks   []uint64 // the tasks that it claimed
	evicted int
	ops     []hint // of a batch
}

// begun is a claim that an entry began.
type begun struct {
	id, token uint64
	endU      int64
}

func newModel() *model {
	return &model{
		keys: map[string]uint64{}, requests: map[string]*remembered{}, byToken: map[uint64]*remembered{},
		removed: map[uint64]*removed{}, types: map[string]*taskType{},
		schedules: map[string]*kept{}, leastAge: dayMS, mostAge: dayMS,
	}
}

// answer is what one command is answered.
type answer struct {
	code      string
	why       string // a task cannot be claimed by its id
	repeated  bool
	gone      bool
	task      *task
	submitted []submittedTask
	claims    []claimedTask
	known     bool // a completion's claim had been answered before
	kind      *typeSeen
	results   []answer
	failedOp  int
	evicted   int
	expired   int
	schedule  *kept
	created   bool
	acted     []actedOn
	parent    *parentSeen
}

type submittedTask struct {
	task                *task
	created, same, gone bool
}

type claimedTask struct {
	task  *task // nil: it is no more
	id    uint64
	token uint64
	live  bool
}

// entry applies the commands of an entry. hints has an element per command, or
// is nil.
func (m *model) entry(u, t int64, commands []*command, hints []hint) []answer {
	m.u, m.t = max(m.u, u), max(m.t, t)
	m.begun, m.unsure, m.sub = nil, nil, 0
	answers := make([]answer, len(commands))
	for i, c := range commands {
		m.hint = &hint{}
		if hints != nil {
			m.hint = &hints[i]
		}
		answers[i] = m.command(c)
		m.showSteps(c, &answers[i])
		m.removeLeaving()
	}
	return answers
}

// command applies one command.
func (m *model) command(c *command) answer {
	switch c.verb {
	case verbBatch:
		return m.batch(c)
	case verbExpire:
		return m.expire(c.items)
	case verbEvict:
		return m.evict(c.bytes)
	case verbSetType:
		return m.setType(c)
	case verbSetDefaults:
		m.setDefaults(c)
	case verbPatch:
		return m.patch(c)
	case verbClaimTask:
		return m.claimTask(c)
	case verbTick:
		m.tick()
	case verbClaimEnd:
		return m.claimEnd(c)
	case verbExtendEnd:
		return m.extendEnd(c)
	case verbReleaseEnd:
		return m.releaseEnd(c)
	case verbFinalize:
		return m.finalize(c)
	case verbSetNode:
		if !slices.Contains(m.nodes, c.node) {
			m.nodes = append(m.nodes, c.node)
			m.tell("node_set", nil, c.node)
		}
	case verbSetLevel:
		if c.level > m.level {
			m.level = c.level
			m.tell("level_raised", nil, byWhom(strconv.FormatUint(uint64(c.level), 10), c.by))
		}
	case verbSetTrail:
		return m.setTrail(c.bounds)
	case verbTell:
		m.tell(c.told, nil, byWhom(c.what, c.by))
	case verbSetSchedule:
		return m.setSchedule(c.schedule)
	case verbDeleteSchedule:
		return m.deleteSchedule(c.schedule.name)
	case verbRunSchedules:
		return m.runSlots(c.runs)
	case verbAct:
		return m.act(c)
	case verbCheckpoint:
	default:
		return m.op(c, m.hint)
	}
	return answer{}
}

// op applies what may be in a batch, too.
func (m *model) op(c *command, h *hint) answer {
	m.picks = h.picks
	switch c.verb {
	case verbSubmit:
		return answer{submitted: m.submitAll(c.tasks)}
	case verbClaimNext:
		return m.claimNext(c)
	case verbComplete:
		return m.complete(c)
	case verbFail:
		return m.fail(c)
	case verbExtend:
		return m.settle(c, "", func(t *task) {
			m.lengthen(t, c.leaseMS)
			if c.progress != "" {
				t.progress = c.progress
			}
		})
	case verbRelease:
		return m.settle(c, released, func(t *task) {
			t.attempts = max(t.attempts-1, 0)
			m.giveBack(t, released, "", c.delayMS)
		})
	case verbRetry:
		return m.retry(c)
	case verbCancel:
		return m.cancel(c.id)
	default:
		return m.delete(c.id)
	}
}

// find returns the task, nil if there is none.
func (m *model) find(id uint64) *task {
	if id == 0 || id > uint64(len(m.tasks)) {
		return nil
	}
	return m.tasks[id-1]
}

// change returns a new version of the task, in its place.
func (m *model) change(t *task) *task {
	c := *t
	c.updatedAt = m.t
	m.tasks[t.id-1] = &c
	return &c
}

func ended(status string) bool {
	return status == completed || status == failed || status == cancelled
}
