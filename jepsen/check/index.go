package check

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// never is later than every time of a history: when a call of unknown outcome
// returns.
const never = math.MaxInt64

// index is the history arranged by what the rules ask for.
type index struct {
	ops   []history.Op
	final *history.Final
	trail []history.Told
	// clocksSet says that somebody set a node's clock.
	clocksSet bool

	tasks    map[uint64]*task
	ids      []uint64 // of tasks, ascending
	keys     map[string]*key
	requests map[string]*request

	// hiddenClaims is how many tasks may have been claimed by calls whose answer
	// nobody ever got.
	hiddenClaims int
	// givenBack is how many claims of each task were released, by the trail, that nobody was
	// answered with: their leader could not write the answer.
	givenBack map[uint64]int
	// hiddenParents says that some parent's submit has an unknown outcome.
	hiddenParents bool
}

// task is what the history says of one task.
type task struct {
	id          uint64
	ops         []int // that name it, by call
	acts        []int // those that may have changed it with others of its type
	key         string
	kind, group string // its type, "" = no answer tells, and its group
	priority    int32
	submit      *submit // nil if no submit is known to have made it
	claims      []claim // by call

	final *history.Task // nil if the final state does not have it

	parent   bool          // it has steps
	plan     *history.Plan // of a parent, nil if no call says it
	parentID uint64        // of a step, 0 = it is none, or its parent's plan is not known
	place    int           // of a step in its parent's plan
	shownOf  uint64        // the parent that answers show, 0 = none
	hidden   bool          // a parent whose submit nobody was answered, and that no answer shows with its key
}

// orphan reports whether the task is a step of a parent whose plan is not known.
func (t *task) orphan() bool { return t.parentID == 0 && t.shownOf != 0 }

// isStep reports whether the task is a step, for all that is known.
func (t *task) isStep() bool { return t.parentID != 0 || t.shownOf != 0 }

// submit is all the calls that submitted one task: the same key, repeated
// until there was an answer.
type submit struct {
	call, ret   int64 // it took effect in [call, ret]
	acked       int   // the op that returned first, -1 = none was answered
	maxAttempts int32
	delayMS     int64
}

// claim is all the calls that asked for one claim: the same claim_request_id,
// repeated until there was an answer. That of a parent is of its finalization.
type claim struct {
	task      uint64
	token     uint64
	call, ret int64 // it took effect in [call, ret]
	op        int   // that was answered first
	worker    string
	request   string
	leaseMS   int64
	attempts  int32 // as answered, -1 = not said
	extended  bool  // of a claim by id: no answer but that its worker holds it already
}

// key is all the calls that submitted with one idempotency key.
type key struct {
	call    int64          // of the earliest that may have had an effect
	sent    history.Op     // one of them: all say the same of the task
	answers []int          // ops that named a task
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
	x := &index{
		ops: h.Ops, final: h.Final, trail: h.Trail,
		clocksSet: slices.ContainsFunc(h.Events, func(e history.Event) bool {
			return e.Kind == history.Injected && strings.Contains(e.Fault, "clock-")
		}),
		tasks: map[uint64]*task{}, keys: map[string]*key{}, requests: map[string]*request{},
	}
	for i := range x.ops {
		x.addOp(i, &x.ops[i])
	}
	if x.final != nil {
		for i := range x.final.Tasks {
			f := &x.final.Tasks[i]
			t := x.task(f.ID)
			t.final = f
			x.show(t, f, -1)
		}
	}
	x.addSubmits()
	x.addSteps()
	x.addClaims()
	x.addGivenBack()
	x.addActs()
	x.ids = slices.Sorted(maps.Keys(x.tasks))
	for _, t := range x.tasks {
		slices.SortStableFunc(t.ops, func(a, b int) int { return cmp.Compare(x.ops[a].Call, x.ops[b].Call) })
		slices.SortStableFunc(t.claims, func(a, b claim) int { return cmp.Compare(a.call, b.call) })
	}
	return x
}

// took yields the ops of these kinds, of all if none is given, that may have had an
// effect: those that were not refused.
func (x *index) took(kinds ...history.Kind) iter.Seq2[int, *history.Op] {
	return func(yield func(int, *history.Op) bool) {
		for i := range x.ops {
			if op := &x.ops[i]; took(op, kinds) && !yield(i, op) {
				return
			}
		}
	}
}

// of yields the ops that took yields and that name the task, by call.
func (x *index) of(t *task, kinds ...history.Kind) iter.Seq2[int, *history.Op] {
	return func(yield func(int, *history.Op) bool) {
		for _, i := range t.ops {
			if op := &x.ops[i]; took(op, kinds) && !yield(i, op) {
				return
			}
		}
	}
}

func took(op *history.Op, kinds []history.Kind) bool {
	return op.Outcome != history.Failed && (len(kinds) == 0 || slices.Contains(kinds, op.Kind))
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

// known returns the task, one of which nothing is known if there is none.
func (x *index) known(id uint64) *task {
	if t := x.tasks[id]; t != nil {
		return t
	}
	return &task{id: id}
}

// addOp takes one op into the tasks, keys and requests.
func (x *index) addOp(i int, op *history.Op) {
	if op.TaskID != 0 {
		t := x.task(op.TaskID)
		t.ops = append(t.ops, i)
		if op.Seen != nil {
			x.show(t, op.Seen, i)
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

// show notes what an answer, of op or of the final state (-1), showed of a task that
// never changes.
func (x *index) show(t *task, seen *history.Task, op int) {
	x.noteKey(t, seen.Key, op)
	if seen.Type != "" {
		t.kind, t.group, t.priority = seen.Type, seen.Group, seen.Priority
	}
	t.shownOf = cmp.Or(seen.ParentID, t.shownOf)
}

func (x *index) noteKey(t *task, name string, op int) {
	if name == "" {
		return
	}
	t.key = name
	if k := x.key(name); !has(k.seen, t.id) {
		k.seen[t.id] = op
	}
}

func has[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
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
	if op.Key != "" {
		k := x.key(op.Key)
		k.call, k.sent = min(k.call, op.Call), *op
		if op.Outcome == history.OK {
			k.answers = append(k.answers, i)
		}
	}
	if op.Outcome == history.OK {
		t := x.task(op.TaskID)
		x.noteKey(t, op.Key, i)
		t.kind, t.group, t.priority = op.TaskType, op.Group, op.Priority
	}
}

func (x *index) addClaim(i int, op *history.Op) {
	switch {
	case op.Outcome == history.OK && op.TaskID == 0:
		return
	case op.RequestID == "": // each is a claim of its own
		if op.Outcome == history.Unknown && op.Kind == history.Claim {
			x.hiddenClaims += max(op.Limit, 1)
		}
		return
	}
	r := x.requests[op.RequestID]
	if r == nil {
		r = &request{call: never, width: max(op.Limit, 1)}
		x.requests[op.RequestID] = r
	}
	r.call = min(r.call, op.Call)
	if op.Outcome == history.Unknown {
		r.unknown = true
	} else {
		r.answers = append(r.answers, i)
	}
}

// addSubmits folds the calls of each task's submit into one.
func (x *index) addSubmits() {
	for i, op := range x.took(history.Submit) {
		call, ids, ret, acked := op.Call, []uint64{op.TaskID}, op.Return, i
		k := x.keys[op.Key]
		if k != nil {
			call = k.call
		}
		if op.Outcome == history.Unknown {
			ids, ret, acked = nil, never, -1
			if k != nil {
				ids = slices.Collect(maps.Keys(k.seen))
			}
		}
		for _, id := range ids {
			t := x.task(id)
			if t.submit == nil {
				t.plan, t.submit = op.Plan, &submit{call: call, ret: never, acked: -1, maxAttempts: op.MaxAttempts, delayMS: op.DelayMS}
			}
			if ret < t.submit.ret {
				t.submit.ret, t.submit.acked = ret, acked
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
		p.parent = true
		for place := range p.plan.Steps {
			if t := x.task(id + 1 + uint64(place)); t.submit == nil { // else by another call: keys or ids say so
				t.parentID, t.place = id, place
				t.submit = &submit{call: p.submit.call, ret: p.submit.ret, acked: p.submit.acked, maxAttempts: p.plan.Steps[place].MaxAttempts}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		if t := x.tasks[id]; t.orphan() && x.hiddenParents {
			p := x.task(t.shownOf)
			p.hidden = p.submit == nil && p.key == ""
			p.parent = p.parent || p.hidden
		}
	}
}

// ofHidden reports whether the task is a parent that is hidden, or a step of one: of its
// steps and its end little can be said.
func (x *index) ofHidden(t *task) bool { return t.hidden || t.orphan() && x.hiddenParents }

// addClaims folds the calls of each claim into one.
func (x *index) addClaims() {
	for i, op := range x.took(history.Claim, history.ClaimTask, history.ClaimFinalization) {
		if op.Token == 0 || op.Outcome != history.OK {
			continue
		}
		t := x.task(op.TaskID)
		t.parent = t.parent || op.Kind == history.ClaimFinalization
		c := claim{
			task: t.id, token: op.Token, call: op.Call, ret: op.Return, op: i, worker: op.Worker, request: op.RequestID, leaseMS: op.LeaseMS, attempts: -1,
			extended: op.Kind == history.ClaimTask && op.Repeated,
		}
		// A repeat shows its own token with the task as it is now, which may be
		// claimed again.
		if op.Seen != nil && !op.Repeated && op.Seen.Status == statusClaimed && op.Seen.Token == op.Token {
			c.attempts = op.Seen.Attempts
		}
		if r := x.requests[op.RequestID]; r != nil {
			c.call = r.call
		}
		first := t.claimOf(op.Token)
		switch {
		case first == nil:
			t.claims = append(t.claims, c)
		case op.Kind == history.ClaimFinalization:
			first.ret = min(first.ret, op.Return) // by the processor that holds it: its claim goes on
		case c.worker != first.worker: // another was answered with the token: no order has a place for that
			t.claims = append(t.claims, c)
		case c.extended:
			first.ret = min(first.ret, op.Return) // by the worker that holds it: its claim goes on
		case first.extended: // sent twice at once: this one took it
			c.ret = min(c.ret, first.ret)
			*first = c
		case c.request == "" || c.request != first.request:
			t.claims = append(t.claims, c)
		case c.ret < first.ret:
			*first = c
		}
	}
	for _, r := range x.requests {
		if r.unknown && len(r.answers) == 0 {
			x.hiddenClaims += r.width
		}
	}
}

// addGivenBack counts the claims that were given back.
func (x *index) addGivenBack() {
	x.givenBack = map[uint64]int{}
	for i := range x.trail {
		if e := &x.trail[i]; e.Kind == "released" && x.known(e.TaskID).claimOf(e.Token) == nil {
			x.givenBack[e.TaskID]++
		}
	}
}

// claimOf returns the task's claim with the token, nil if nobody was answered
// with it.
func (t *task) claimOf(token uint64) *claim {
	if i := slices.IndexFunc(t.claims, func(c claim) bool { return c.token == token }); i >= 0 {
		return &t.claims[i]
	}
	return nil
}

// addActs finds the tasks that actions on many may have changed: those of their type
// that may have been there.
func (x *index) addActs() {
	byType := map[string][]int{}
	for i, op := range x.took(history.Act) {
		byType[op.TaskType] = append(byType[op.TaskType], i)
	}
	for _, t := range x.tasks {
		for _, i := range byType[t.kind] {
			if t.submit == nil || ended(&x.ops[i]) >= t.submit.call {
				t.acts = append(t.acts, i)
			}
		}
	}
}

// ended returns when op's call may at the latest have taken effect.
func ended(op *history.Op) int64 {
	if op.Outcome == history.Unknown {
		return never
	}
	return op.Return
}

// mayHave reports whether a call of the kind that names the task, or acts on all of its
// type, may have had an effect.
func (x *index) mayHave(t *task, kind history.Kind) bool {
	for range x.of(t, kind) {
		return true
	}
	return slices.ContainsFunc(t.acts, func(i int) bool { return x.ops[i].Action == string(kind) })
}

// made names a call: the ops of one have the same.
type made struct {
	process int
	call    int64
}

func madeBy(op *history.Op) made { return made{op.Process, op.Call} }

// goesOn reports whether op i is one of the same call as the one before it.
func (x *index) goesOn(i int) bool { return i > 0 && madeBy(&x.ops[i]) == madeBy(&x.ops[i-1]) }
