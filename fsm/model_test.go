package fsm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// model is the state machine written a second time, from the contract alone
// and as plainly as can be: slices and linear scans. It shares the types of
// commands and results with the machine, nothing else.
//
// Where the contract leaves a choice to a hash (which task a random claim
// takes, how much of a backoff the jitter takes off) or to an estimate (how
// many tasks an eviction removes) the model is told what the machine chose,
// and finds fault with what it may not choose.
type model struct {
	index     uint64
	u, t      int64
	level     uint32
	tasks     []*record.Task // by id
	ids       uint64         // given out
	tokens    uint64         // given out
	requests  []*modelRequest
	gone      []*modelGone    // the oldest first
	types     []*modelType    // those that have settings
	defaults  record.Defaults // the server's
	nodes     []record.NodeRecord
	schedules []record.ScheduleView
	trail     modelTrail
	ends      []modelEnd // of the minutes in which there were entries, ascending
	submitter string     // what is said of the tasks that are submitted
	begun     []command.Lease
	leaving   []*record.Task // ended by the command, and not to be kept after it
	endedNow  []uint64       // by the entry, and those that it removed

	shares   map[shareName]modelShare
	turns    modelTurns
	tally    Tally        // of the entry
	counted  []modelCount // what rates are of
	requeued int          // tasks that came back in this entry
	removed  int          // and those that were removed

	most int // claims that requests may remember
	full int // claims of a request from which it takes no more calls
	// The request of the claims of the current batch, and the place of its current op.
	batchRequest string
	batchPlace   uint32
	mostGone     int // removed tasks that are remembered

	evicted      *record.Task                 // the last one
	evictedBytes int64                        // with its steps
	after        func(id uint64) *record.Task // the machine's task after the entry
	faults       []string                     // choices of the machine that were not its to make
}

func newModel() *model {
	return &model{shares: map[shareName]modelShare{}, turns: newModelTurns(), most: 1_000_000, full: 1000, mostGone: 1_000_000}
}

// modelRequest remembers the calls with a claim request id.
type modelRequest struct {
	id     string
	calls  []modelCall
	endedU int64 // when their last claim was seen to have ended; -1 while one lives
}

// modelCall is a call that got claims.
type modelCall struct {
	place  uint32
	worker string
	what   any // ClaimNext or ClaimTask without lease and request
	claims []record.ClaimRef
}

// modelGone is a removed task, and until when it is remembered.
type modelGone struct {
	task   *record.Task // as it ended
	untilU int64
}

// copy is a model that goes its own way from here on.
func (s *model) copy() *model {
	c := *s
	c.tasks = make([]*record.Task, len(s.tasks))
	for i, t := range s.tasks {
		c.tasks[i] = s.answer(t)
	}
	c.requests = make([]*modelRequest, len(s.requests))
	for i, r := range s.requests {
		other := *r
		c.requests[i] = &other
	}
	c.types = make([]*modelType, len(s.types))
	for i, x := range s.types {
		other := *x
		if x.move != nil {
			other.move = new(*x.move)
		}
		c.types[i] = &other
	}
	c.schedules = slices.Clone(s.schedules)
	c.gone, c.nodes, c.begun = slices.Clone(s.gone), slices.Clone(s.nodes), slices.Clone(s.begun)
	c.leaving, c.endedNow, c.counted = nil, slices.Clone(s.endedNow), slices.Clone(s.counted)
	c.ends = slices.Clone(s.ends)
	c.trail = s.trail.copy()
	c.turns, c.shares = s.turns.copy(), maps.Clone(s.shares)
	return &c
}

// apply applies an entry. seen is the machine's result.
func (s *model) apply(e testEntry, seen Applied) Applied {
	s.index, s.u, s.t = e.Index, max(s.u, e.Stamp.U), max(s.t, e.Stamp.T)
	s.begun, s.endedNow, s.requeued, s.removed, s.trail.sub = nil, nil, 0, 0, 0
	s.tally = Tally{}
	s.settleTurns() // time alone opens shares
	a := Applied{Index: e.Index, Stamp: record.Stamp{U: s.u, T: s.t}}
	for i, c := range e.Commands {
		r := &Result{}
		if i < len(seen.Results) {
			r = &seen.Results[i]
		}
		a.Results = append(a.Results, s.command(c, r))
		if _, ok := c.(command.Checkpoint); ok {
			a.Checkpoint = true
		}
	}
	a.Leases, a.Ended, a.Requeued, a.Removed = s.begun, s.endedNow, s.requeued, s.removed
	a.Events, a.Tally = s.trail.sub > 0, s.tally
	s.noteEnd()
	return a
}

func (s *model) command(c command.Command, seen *Result) Result {
	r := s.change(c, seen)
	s.settleTurns()
	for _, t := range s.leaving { // parents and plain tasks
		if s.find(t.ID) == t && t.Status >= record.StatusCompleted {
			s.retire(t)
		}
	}
	s.leaving = nil
	for _, q := range s.requests {
		if q.endedU < 0 && !slices.ContainsFunc(q.claims(), s.lives) {
			q.endedU = s.u
		}
	}
	return r
}

func (s *model) change(c command.Command, seen *Result) Result {
	switch c := c.(type) {
	case command.Submit:
		r := Result{Submitted: s.submit(c.Tasks)}
		if len(c.Tasks) > 1 {
			return r
		}
		if r.Submitted[0].Refused {
			r.Code = CodeInvalidTask
			return r
		}
		return s.withSteps(r, r.Submitted[0].Task)
	case command.ClaimNext:
		return s.claimNext(c, seen)
	case command.ClaimTask:
		return s.claimTask(c)
	case command.Complete:
		return s.complete(c, seen)
	case command.Fail:
		return s.fail(c, seen)
	case command.Extend:
		return s.settle(c.Hold, record.OutcomeNone, func(t *record.Task) {
			lease := c.LeaseMS
			if lease == 0 {
				lease = t.ClaimLeaseMS
			}
			sooner := c.Exact && s.u+lease < t.LeaseEndU
			if sooner {
				t.LeaseEndU, t.ClaimLeaseMS = s.u+lease, lease
			}
			s.lengthen(t, c.LeaseMS)
			if sooner {
				s.begun = append(s.begun, command.Lease{TaskID: t.ID, Token: t.Token, Seq: t.LeaseSeq, EndU: t.LeaseEndU})
			}
			if c.Progress != nil {
				o := *t.Opts()
				o.Progress = c.Progress
				t.SetOptions(o)
			}
		})
	case command.Release:
		return s.release(c)
	case command.Retry:
		r := s.retry(c)
		return s.withSteps(r, r.Task)
	case command.Cancel:
		r := s.cancel(c.ID)
		return s.withSteps(r, r.Task)
	case command.Patch:
		r := s.patch(c)
		return s.withSteps(r, r.Task)
	case command.Delete:
		return s.delete(c.ID)
	case command.Signal:
		return s.signal(c)
	case command.AddSteps:
		return s.addSteps(c)
	case command.Expire:
		return s.expire(c)
	case command.SetType:
		return s.setType(c)
	case command.SetShare:
		return s.setShare(c)
	case command.MoveTasks:
		return s.moveTasks(c)
	case command.SetDefaults:
		return s.setDefaults(c)
	case command.Evict:
		return s.evict(seen.Evicted)
	case command.Forget:
		return s.forget(seen.Forgotten)
	case command.Batch:
		return s.batch(c, seen)
	case command.Act:
		return s.act(c)
	case command.ClaimFinalization:
		return s.claimFinalization(c)
	case command.ExtendFinalization:
		return s.extendFinalization(c)
	case command.ReleaseFinalization:
		return s.releaseFinalization(c)
	case command.Finalize:
		return s.finalize(c)
	case command.SetSchedule:
		return s.setSchedule(c)
	case command.DeleteSchedule:
		return s.deleteSchedule(c)
	case command.RunSchedules:
		return s.runSchedules(c)
	case command.Tick:
		s.tick()
		return Result{}
	case command.SetNode:
		if slices.Contains(s.nodes, c.Node) {
			return Result{}
		}
		s.tell(event.NodeSet, nil, nil, c.Node.NodeID)
		s.nodes = slices.DeleteFunc(s.nodes, func(n record.NodeRecord) bool { return n.UUID == c.Node.UUID })
		s.nodes = append(s.nodes, c.Node)
		return Result{}
	case command.RemoveNode:
		for _, n := range s.nodes {
			if n.UUID == c.UUID {
				s.tell(event.NodeRemoved, nil, nil, n.NodeID)
			}
		}
		s.nodes = slices.DeleteFunc(s.nodes, func(n record.NodeRecord) bool { return n.UUID == c.UUID })
		return Result{}
	case command.SetLevel:
		if c.Level > s.level {
			if s.level == 0 {
				s.defaults = c.Defaults
			}
			s.level = c.Level
			s.tell(event.LevelRaised, nil, nil, by(fmt.Sprint(c.Level), c.By))
		}
		return Result{}
	case command.SetTrail:
		return s.setTrail(c)
	case command.Tell:
		s.tell(c.Kind, nil, nil, by(c.What, c.By))
		return Result{}
	case command.RestoreChunk, command.RestoreEnd:
		return Result{Code: CodeInvalidRequest}
	}
	return Result{} // a Checkpoint changes nothing that can be seen
}

func (s *model) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *model) find(id uint64) *record.Task {
	for _, t := range s.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// findGone returns the removed task if it is remembered.
func (s *model) findGone(id uint64) *record.Task {
	for _, g := range s.gone {
		if g.task.ID == id && s.u < g.untilU {
			return g.task
		}
	}
	return nil
}

// answer is a copy that later changes do not reach.
func (s *model) answer(t *record.Task) *record.Task {
	c := *t
	c.Log = slices.Clone(t.Log)
	return &c
}

// goneAnswer returns the remembered part of a removed task.
func goneAnswer(t *record.Task) *record.Task {
	return &record.Task{ID: t.ID, Type: t.Type, Key: keyKept(t), Status: t.Status, WorkerID: t.WorkerID, Token: t.Token, Then: t.Then}
}

// keyKept is the key that a removed task keeps taken.
func keyKept(t *record.Task) string {
	if t.Opts().UniqueActive {
		return ""
	}
	return t.Key
}

// refuse is the refusal that the task stands for.
func (s *model) refuse(c Code, t *record.Task) Result { return Result{Code: c, Task: s.answer(t)} }

func (s *model) endedCode(t *record.Task) Code {
	return map[record.Status]Code{record.StatusCompleted: CodeTaskCompleted, record.StatusFailed: CodeTaskFailed, record.StatusCancelled: CodeTaskCancelled}[t.Status]
}

// meets tells whether no two tasks of these can have the key at a time: both take it
// among all tasks, or they are of one type.
func meets(t *record.Task, taskType, key string, ofType bool) bool {
	return key != "" && t.Key == key && (t.Type == taskType || !ofType && !t.Opts().KeyOfType)
}

// inWindow tells whether the key is not free by time.
func (s *model) inWindow(t *record.Task) bool {
	ms := t.Opts().UniqueMS
	return ms == 0 || s.t < t.CreatedAt+ms
}

// holder returns the task that keeps another from having the key: as long as it
// exists, or, if its key is only taken while it is active, until it ends. One that
// has the key among all tasks comes first.
func (s *model) holder(taskType, key string, ofType bool) *record.Task {
	var found *record.Task
	for _, t := range s.tasks {
		if meets(t, taskType, key, ofType) && (!t.Opts().UniqueActive || t.Status < record.StatusCompleted) && s.inWindow(t) &&
			(found == nil || found.Opts().KeyOfType) {
			found = t
		}
	}
	return found
}

// formerHolder returns the removed task that had the key and is remembered.
func (s *model) formerHolder(taskType, key string, ofType bool) *record.Task {
	var found *record.Task
	for _, g := range s.gone {
		if meets(g.task, taskType, key, ofType) && keyKept(g.task) != "" && s.inWindow(g.task) && s.u < g.untilU && (found == nil || found.Opts().KeyOfType) {
			found = g.task
		}
	}
	return found
}

func (s *model) submit(tasks []record.NewTask) []Submitted {
	var all []Submitted
	for _, n := range tasks {
		if step, never := s.never(n, 0); never {
			all = append(all, Submitted{Task: &record.Task{}, Refused: true, Step: step})
			continue
		}
		all = append(all, s.submitOne(n))
	}
	return all
}

// never says whether the task is refused, for which step: -1 is itself. The task ended
// leaves its key, if that was only its own until its end.
func (s *model) never(n record.NewTask, ended uint64) (step int, refused bool) {
	if refused, step = s.late(n), -1; n.Parent != nil {
		refused = false
		for i := range n.Parent.Steps {
			if s.late(n.Parent.Steps[i].Task) {
				refused, step = true, i
				break
			}
		}
	}
	if t := s.holder(n.Type, n.Key, n.KeyOfType); refused && t != nil {
		refused = t.ID == ended && t.Opts().UniqueActive || s.replaces(n, t)
	} else if refused {
		refused = s.formerHolder(n.Type, n.Key, n.KeyOfType) == nil
	}
	return step, refused
}

// late says whether the task would expire before its delay is over.
func (s *model) late(n record.NewTask) bool {
	return s.delay(n) > 0 && n.ExpiresAt != 0 && s.t+s.delay(n) >= n.ExpiresAt
}

func (s *model) submitOne(n record.NewTask) Submitted {
	same := func(t *record.Task) bool {
		return t.Type == n.Type && string(t.Params) == string(n.Params) && string(t.Payload) == string(n.Payload)
	}
	if t := s.holder(n.Type, n.Key, n.KeyOfType); t != nil && s.replaces(n, t) {
		return s.replace(t, n)
	} else if t != nil {
		return Submitted{Task: s.answer(t), SameRequest: same(t)}
	}
	if t := s.formerHolder(n.Type, n.Key, n.KeyOfType); t != nil {
		return Submitted{Task: goneAnswer(t), SameRequest: same(t), Gone: true}
	}
	t := s.newTask(n)
	switch {
	case n.Parent != nil:
		s.submitParent(t, n.Parent)
	default:
		s.tell(event.Submitted, t, nil, s.submitter)
		if t.Status == record.StatusScheduled {
			s.tellWait(t, nil)
		}
	}
	return Submitted{Task: s.answer(t), Created: true}
}

// replaces says whether the task has the submit's key, is of its type and waits.
func (s *model) replaces(n record.NewTask, t *record.Task) bool {
	return n.Replace && t.Type == n.Type && (t.Status == record.StatusPending || t.Status == record.StatusScheduled)
}

// replace submits in place of the task.
func (s *model) replace(t *record.Task, n record.NewTask) Submitted {
	was := s.answer(t)
	at := n.RunAt
	if delay := s.delay(n); delay > 0 {
		at = s.t + delay
	}
	o := *t.Opts()
	o.ExpiresAt, o.ExpiresAgain, o.Attributes = n.ExpiresAt, n.ExpiresAgain, n.Attributes
	setPlainly(t, o)
	t.Params, t.Payload, t.RunAt = n.Params, n.Payload, at
	if !cmp.Equal(was, t) {
		s.askedFor(t, at)
		t.UpdatedAt = s.t
		if t.Status == record.StatusScheduled {
			s.tellWait(t, nil)
		}
	}
	return Submitted{Task: s.answer(t), SameRequest: true, Replaced: true}
}

// newTask makes a task of what was submitted, pending or scheduled.
func (s *model) newTask(n record.NewTask) *record.Task {
	s.ids++
	t := &record.Task{
		ID: s.ids, Type: n.Type, Params: n.Params, Payload: n.Payload, Priority: n.Priority, MaxAttempts: n.MaxAttempts,
		Key: n.Key, LeaseMS: n.LeaseMS, Status: record.StatusPending, CreatedAt: s.t, UpdatedAt: s.t,
	}
	setPlainly(t, record.Options{
		ExpiresAt: n.ExpiresAt, ExpiresAgain: n.ExpiresAgain, Backoff: n.Backoff, RetentionMS: n.RetentionMS, Labels: n.Labels, Group: n.Group, UniqueActive: n.UniqueActive, UniqueMS: n.UniqueMS,
		SignalMS: n.SignalMS, Traceparent: n.Traceparent, ShareKey: n.ShareKey, Attributes: n.Attributes, KeyOfType: n.KeyOfType && n.Key != "",
	})
	if t.MaxAttempts == record.DefaultAttempts {
		t.MaxAttempts = 3
		if x := s.inForce(n.Type); x.LimitSet {
			t.MaxAttempts = x.MaxAttempts
		}
	}
	s.askedFor(t, n.RunAt)
	if delay := s.delay(n); delay > 0 {
		s.askedFor(t, s.t+delay)
	}
	if s.lacksSignal(t) {
		s.awaitSignal(t)
	}
	s.tasks = append(s.tasks, t)
	s.tally.Submitted++
	s.counted = append(s.counted, modelCount{t.Type, record.StatusPending, s.t})
	return t
}

// delay returns how long a new task waits: as long as it says itself, else as its type says. One with steps does not wait.
func (s *model) delay(n record.NewTask) int64 {
	if n.RunAt == 0 && n.DelayMS == 0 && !n.AtOnce && n.Parent == nil {
		return s.settings(n.Type).DelayMS
	}
	return n.DelayMS
}

// waitUntil makes the task scheduled; a time that has come makes it pending.
func (s *model) waitUntil(t *record.Task, at int64) {
	t.Status = record.StatusPending
	if at > s.t {
		t.Status, t.RunAt = record.StatusScheduled, at
	}
}

// askedFor is waitUntil of a time that the user named: it stays visible.
func (s *model) askedFor(t *record.Task, at int64) {
	s.waitUntil(t, at)
	t.RunAt = at
}

// batch applies the ops in order: the atomic one on a copy that is thrown away
// when an op is refused.
func (s *model) batch(c command.Batch, seen *Result) Result {
	var r Result
	try := s
	if c.Atomic {
		try = s.copy()
	}
	for i, op := range c.Ops {
		was := &Result{}
		if i < len(seen.Results) {
			was = &seen.Results[i]
		}
		try.batchRequest, try.batchPlace = c.RequestID, uint32(i)
		one := try.change(op, was)
		try.batchRequest, try.batchPlace = "", 0
		try.settleTurns()
		one.Parent = nil // answers to batches do not tell of steps
		code := one.Code
		if _, claims := op.(command.ClaimNext); claims && code == "" && len(one.Claims) == 0 {
			code = CodeNoPendingTasks
		}
		if c.Atomic && code != "" {
			return Result{Code: code, Reason: one.Reason, Task: one.Task, Gone: one.Gone, Submitted: one.Submitted, FailedOp: i}
		}
		r.Results = append(r.Results, one)
	}
	*s = *try
	return r
}
