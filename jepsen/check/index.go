package check

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// never is later than every time of a history: when a call of unknown outcome
// returns.
const never = math.MaxInt64

// index is the history arranged by what the rules ask for.
type index struct {
	h     *history.History
	tasks map[uint64]*task
	ids   []uint64 // of tasks, ascending

	keys     map[string]*key
	requests map[string]*request

	// hiddenClaims is how many tasks may have been claimed by calls whose answer
	// nobody ever got. hiddenReleases says that some of those calls had no
	// claim_request_id, so that the leader may have given such a claim back.
	hiddenClaims   int
	hiddenReleases bool
	// hiddenSubmits is how many tasks may have been submitted without anybody
	// having got an id, and without a key to know them by.
	hiddenSubmits int
	// hiddenParents says that some parent's submit has an unknown outcome.
	hiddenParents bool
}

// origin returns the op of the history that op i was made from: what a list shows
// is ordered as reads of their own, with what made them as their process.
func (x *index) origin(i int) int {
	if p := x.h.Ops[i].Process; p < 0 {
		return -1 - p
	}
	return i
}

// task is what the history says of one task.
type task struct {
	id     uint64
	ops    []int // that name it, by call
	acts   []int // those that may have changed it with others of its type
	key    string
	submit *submit // nil if no submit is known to have made it
	claims []claim // by call

	final *history.Task // nil if the final state does not have it

	parent   bool          // it has steps
	plan     *history.Plan // of a parent, nil if no call says it
	parentID uint64        // of a step, 0 = it is none
	place    int           // of a step in its parent's plan
	orphan   bool          // a step of a parent whose submit nobody was answered
	hidden   bool          // such a parent, which no answer shows with its key
}

// submit is all the calls that submitted one task: the same key, repeated
// until there was an answer.
type submit struct {
	call, ret   int64 // it took effect in [call, ret]
	acked       int   // the op that returned first, -1 = none was answered
	maxAttempts int32
}

// claim is all the calls that asked for one claim: the same claim_request_id,
// repeated until there was an answer. That of a parent is of its finalization.
type claim struct {
	token     uint64
	call, ret int64 // it took effect in [call, ret]
	op        int   // that was answered first
	worker    string
	request   string
	leaseMS   int64
	attempts  int32 // as answered, -1 = not said
}

// key is all the calls that submitted with one idempotency key.
type key struct {
	call    int64 // of the earliest that may have had an effect
	answers []int // ops that named a task
	unknown bool
	seen    map[uint64]int // task → first op whose answer shows it with this key
}

// request is all the calls with one claim_request_id.
type request struct {
	call    int64 // of the earliest that may have had an effect
	answers []int // ops that named a task
	unknown bool
	width   int // tasks that one call may take
}

// newIndex arranges h, which has the right form.
func newIndex(h *history.History) *index {
	x := &index{h: h, tasks: map[uint64]*task{}, keys: map[string]*key{}, requests: map[string]*request{}}
	for i := range h.Ops {
		x.addOp(i)
	}
	if h.Final != nil {
		for i := range h.Final.Tasks {
			f := &h.Final.Tasks[i]
			t := x.task(f.ID)
			t.final = f
			x.noteKey(t, f.Key, -1)
		}
	}
	x.addSubmits()
	x.addSteps()
	x.addClaims()
	x.addActs()
	for id, t := range x.tasks {
		x.ids = append(x.ids, id)
		byCall := func(a, b int) int { return cmp.Compare(h.Ops[a].Call, h.Ops[b].Call) }
		slices.SortStableFunc(t.ops, byCall)
		slices.SortStableFunc(t.claims, func(a, b claim) int { return cmp.Compare(a.call, b.call) })
	}
	slices.Sort(x.ids)
	return x
}

// task returns the task, which it adds if need be.
func (x *index) task(id uint64) *task {
	t := x.tasks[id]
	if t == nil {
		t = &task{id: id}
		x.tasks[id] = t
	}
	return t
}

// addOp takes one op into the tasks, keys and requests.
func (x *index) addOp(i int) {
	op := &x.h.Ops[i]
	if op.TaskID != 0 {
		t := x.task(op.TaskID)
		t.ops = append(t.ops, i)
		if op.Seen != nil {
			x.noteKey(t, op.Seen.Key, i)
		}
	}
	if op.Outcome == history.Failed {
		return
	}
	switch op.Kind {
	case history.Submit:
		x.addSubmit(i, op)
	case history.Claim, history.ClaimTask:
		x.addClaim(i, op)
	}
}

// noteKey notes that an answer, of op or of the final state (-1), showed t
// with the key.
func (x *index) noteKey(t *task, name string, op int) {
	if name == "" {
		return
	}
	t.key = name
	k := x.key(name)
	if _, ok := k.seen[t.id]; !ok {
		k.seen[t.id] = op
	}
}

func (x *index) key(name string) *key {
	k := x.keys[name]
	if k == nil {
		k = &key{call: never, seen: map[uint64]int{}}
		x.keys[name] = k
	}
	return k
}

func (x *index) addSubmit(i int, op *history.Op) {
	x.hiddenParents = x.hiddenParents || op.Plan != nil && op.Outcome == history.Unknown
	if op.Key == "" {
		if op.Outcome == history.Unknown {
			x.hiddenSubmits++
		}
		return
	}
	k := x.key(op.Key)
	k.call = min(k.call, op.Call)
	if op.Outcome == history.Unknown {
		k.unknown = true
		return
	}
	k.answers = append(k.answers, i)
	x.noteKey(x.task(op.TaskID), op.Key, i)
}

func (x *index) addClaim(i int, op *history.Op) {
	width := max(op.Limit, 1)
	if op.RequestID == "" {
		if op.Outcome == history.Unknown {
			x.hiddenClaims += width
			x.hiddenReleases = true
		}
		return
	}
	r := x.requests[op.RequestID]
	if r == nil {
		r = &request{call: never, width: width}
		x.requests[op.RequestID] = r
	}
	switch {
	case op.Outcome == history.Unknown:
		r.unknown = true
		r.call = min(r.call, op.Call)
	case op.TaskID != 0:
		r.answers = append(r.answers, i)
		r.call = min(r.call, op.Call)
	}
}

// addSubmits folds the calls of each task's submit into one.
func (x *index) addSubmits() {
	for i := range x.h.Ops {
		op := &x.h.Ops[i]
		if op.Kind != history.Submit || op.Outcome != history.OK {
			continue
		}
		t := x.task(op.TaskID)
		call := op.Call
		if op.Key != "" {
			call = x.keys[op.Key].call
		}
		if t.submit == nil {
			t.submit = &submit{call: call, ret: op.Return, acked: i, maxAttempts: op.MaxAttempts}
			t.plan = op.Plan
		}
		t.submit.call = min(t.submit.call, call)
		if op.Return < t.submit.ret {
			t.submit.ret, t.submit.acked = op.Return, i
		}
	}
	// A task that only unknown submits can have made.
	for i := range x.h.Ops {
		op := &x.h.Ops[i]
		if op.Kind != history.Submit || op.Outcome != history.Unknown || op.Key == "" {
			continue
		}
		k := x.keys[op.Key]
		for id := range k.seen {
			if t := x.tasks[id]; t.submit == nil {
				t.submit = &submit{call: k.call, ret: never, acked: -1, maxAttempts: op.MaxAttempts}
				t.plan = op.Plan
			}
		}
	}
}

// addSteps adds the steps of each parent: they were submitted with it.
func (x *index) addSteps() {
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		p := x.tasks[id]
		if p.plan == nil {
			continue
		}
		for place := range p.plan.Steps {
			t := x.task(id + 1 + uint64(place))
			if t.submit != nil { // and by another call: checkParents says so
				continue
			}
			t.parentID, t.place = id, place
			t.submit = &submit{call: p.submit.call, ret: p.submit.ret, acked: p.submit.acked, maxAttempts: p.plan.Steps[place].MaxAttempts}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		t := x.tasks[id]
		t.parent = t.parent || t.plan != nil
		of := x.shownParent(t)
		if t.orphan = t.parentID == 0 && of != 0; !t.orphan || !x.hiddenParents {
			continue
		}
		if p := x.task(of); p.submit == nil {
			p.parent, p.hidden = true, true
		}
	}
}

// shownParent returns the parent that answers show of a step, 0 if none does.
func (x *index) shownParent(t *task) uint64 {
	for _, i := range t.ops {
		if seen := x.h.Ops[i].Seen; seen != nil && seen.ParentID != 0 {
			return seen.ParentID
		}
	}
	return 0
}

// isHidden reports whether the task is a parent whose submit nobody was answered and that no
// answer shows with its key: of its steps and its end little can be said.
func (x *index) isHidden(id uint64) bool {
	t := x.tasks[id]
	return t != nil && t.hidden
}

// ofHidden reports whether the task is such a parent, or a step of one.
func (x *index) ofHidden(id uint64) bool {
	t := x.tasks[id]
	return t != nil && (t.hidden || t.orphan && x.hiddenParents)
}

// addClaims folds the calls of each claim into one.
func (x *index) addClaims() {
	type of struct {
		request string
		task    uint64
	}
	at := map[of]int{}
	for i := range x.h.Ops {
		op := &x.h.Ops[i]
		if !claims(op) {
			continue
		}
		t := x.task(op.TaskID)
		t.parent = t.parent || op.Kind == history.ClaimFinalization
		if first := t.claimOf(op.Token); first != nil && (op.Kind == history.ClaimFinalization || op.Kind == history.ClaimTask && op.Repeated) {
			first.ret = min(first.ret, op.Return)
			continue // by the worker that holds it: its claim goes on
		}
		c := claim{
			token: op.Token, call: op.Call, ret: op.Return, op: i, worker: op.Worker, request: op.RequestID, leaseMS: op.LeaseMS, attempts: -1,
		}
		// A repeat shows its own token with the task as it is now, which may be
		// claimed again.
		if op.Seen != nil && !op.Repeated && op.Seen.Status == "claimed" && op.Seen.Token == op.Token {
			c.attempts = op.Seen.Attempts
		}
		if op.RequestID == "" {
			t.claims = append(t.claims, c)
			continue
		}
		c.call = x.requests[op.RequestID].call
		if j, ok := at[of{op.RequestID, op.TaskID}]; ok && t.claims[j].token == op.Token {
			if first := &t.claims[j]; c.ret < first.ret {
				*first = c
			}
			continue
		}
		at[of{op.RequestID, op.TaskID}] = len(t.claims)
		t.claims = append(t.claims, c)
	}
	for _, r := range x.requests {
		if r.unknown && len(r.answers) == 0 {
			x.hiddenClaims += r.width
		}
	}
}

// claims reports whether op was answered with a claim.
func claims(op *history.Op) bool {
	switch op.Kind {
	case history.Claim, history.ClaimTask:
		return op.Outcome == history.OK && op.TaskID != 0
	case history.ClaimFinalization:
		return op.Outcome == history.OK && op.Done
	}
	return false
}

// addActs finds the tasks that actions on many may have changed: those of their type
// that may have been there.
func (x *index) addActs() {
	byType := map[string][]int{}
	for i := range x.h.Ops {
		if op := &x.h.Ops[i]; op.Kind == history.Act && op.Outcome != history.Failed {
			byType[op.TaskType] = append(byType[op.TaskType], i)
		}
	}
	if len(byType) == 0 {
		return
	}
	for _, t := range x.tasks {
		for _, i := range byType[x.placeOf(t).kind] {
			if t.submit == nil || ended(&x.h.Ops[i]) >= t.submit.call {
				t.acts = append(t.acts, i)
			}
		}
	}
}

// claimOf returns the task's claim with the token, nil if nobody was answered
// with it.
func (t *task) claimOf(token uint64) *claim {
	for i := range t.claims {
		if t.claims[i].token == token {
			return &t.claims[i]
		}
	}
	return nil
}

// ended returns when op's call may at the latest have taken effect.
func ended(op *history.Op) int64 {
	if op.Outcome == history.Unknown {
		return never
	}
	return op.Return
}

// types returns the types that the ops are about which may have had an effect and are
// as is says.
func (x *index) types(is func(op *history.Op) bool) map[string]bool {
	types := map[string]bool{}
	for i := range x.h.Ops {
		if op := &x.h.Ops[i]; op.Outcome != history.Failed && is(op) {
			types[op.TaskType] = true
		}
	}
	return types
}
