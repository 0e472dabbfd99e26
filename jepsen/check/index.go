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

// never is later than every time in a history. A call of unknown outcome returns then.
const never = math.MaxInt64

// index arranges the history for the rules.
type index struct {
	ops   []history.Op
	final *history.Final
	trail []history.Told
	// clocksSet says that a node's clock was set.
	clocksSet bool

	tasks    map[uint64]*task
	ids      []uint64 // of tasks, ascending
	keys     map[string]*key
	requests map[string]*request

	// hiddenClaims counts the tasks that may have been claimed by calls whose answer was lost.
	hiddenClaims int
	// givenBack counts, for each task, the claims that the trail shows as released although no
	// caller received them: their leader could not write the answer.
	givenBack map[uint64]int
	// hiddenParents says that the submit of some parent has an unknown outcome, or an add_steps.
	hiddenParents bool
	hiddenAdds    []uint64 // steps that may have added others which no answer shows
}

// task collects the history of one task.
type task struct {
	id          uint64
	ops         []int // that name the task, in call order
	acts        []int // actions on many tasks that may have changed it
	key         string
	kind, group string // its type, "" if no answer shows it, and its group
	share       string // its share key
	priority    int32
	submit      *submit // nil if no known call submitted the task
	claims      []claim // in call order

	final *history.Task // nil if the task is not in the final state

	parent   bool          // it has steps
	plan     *history.Plan // of a parent; nil if no call shows it
	parentID uint64        // of a step; 0 for other tasks, or if the parent's plan is not known
	place    int           // of a step within its parent's plan
	added    []uint64      // of a parent: the ids of the last steps of its plan, which were added to it
	adds     []submit      // how they were added
	// openPlan says of a parent that it may have been given steps that no answer shows.
	openPlan bool
	shownOf  uint64 // the parent in the answers, 0 = none
	hidden   bool   // a parent whose submit got no answer and whose key no answer shows
}

// orphan reports whether the task is a step of a parent whose plan is not known.
func (t *task) orphan() bool { return t.parentID == 0 && t.shownOf != 0 }

// isStep reports whether anything shows that the task is a step.
func (t *task) isStep() bool { return t.parentID != 0 || t.shownOf != 0 }

// submit combines all calls that submitted one task: repeats with the same key until one was
// answered.
type submit struct {
	call, ret   int64 // it took effect in [call, ret]
	acked       int   // the op that returned first, -1 if none was answered
	maxAttempts int32
	delayMS     int64
}

// claim combines all calls for one claim: repeats with the same claim_request_id until one was
// answered. A claim of a parent is a claim of its finalization.
type claim struct {
	task      uint64
	token     uint64
	call, ret int64 // it took effect in [call, ret]
	op        int   // the one answered first
	worker    string
	request   string
	leaseMS   int64
	attempts  int32 // in the answer, -1 if absent
	extended  bool  // a claim by id that was only told that its worker holds the task already
}

// key combines all calls that submitted with one idempotency key.
type key struct {
	call    int64          // of the earliest that may have had an effect
	sent    history.Op     // one of them; all submit the same task
	answers []int          // ops that named a task
	seen    map[uint64]int // task → first op whose answer shows it with this key
}

// request combines all calls with one claim_request_id.
type request struct {
	call    int64 // of the earliest that may have had an effect
	answers []int // ops that named a task
	unknown bool
	width   int // tasks that one call may take
}

// newIndex arranges h, which must be well formed.
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
	x.addAdded()
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

// took yields the ops of these kinds (all kinds if none is given) that were not refused, and so may
// have had an effect.
func (x *index) took(kinds ...history.Kind) iter.Seq2[int, *history.Op] {
	return func(yield func(int, *history.Op) bool) {
		for i := range x.ops {
			if op := &x.ops[i]; took(op, kinds) && !yield(i, op) {
				return
			}
		}
	}
}

// of yields, in call order, the ops from took that name the task.
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

// task returns the task and adds it if necessary.
func (x *index) task(id uint64) *task {
	t := x.tasks[id]
	if t == nil {
		t = &task{id: id}
		x.tasks[id] = t
	}
	return t
}

// known returns the task, or an empty one if the history does not name it.
func (x *index) known(id uint64) *task {
	if t := x.tasks[id]; t != nil {
		return t
	}
	return &task{id: id}
}

// addOp adds one op to its tasks, keys and requests.
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

// show notes the fields of a task that never change, as an answer shows them: op's, or the final
// state's if op is -1.
func (x *index) show(t *task, seen *history.Task, op int) {
	x.noteKey(t, seen.Key, op)
	if seen.Type != "" {
		t.kind, t.group, t.share, t.priority = seen.Type, seen.Group, seen.ShareKey, seen.Priority
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
		t.kind, t.group, t.share, t.priority = op.TaskType, op.Group, op.ShareKey, op.Priority
	}
}

func (x *index) addClaim(i int, op *history.Op) {
	switch {
	case op.Outcome == history.OK && op.TaskID == 0:
		return
	case op.RequestID == "": // each is a separate claim
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

// addSubmits combines the calls of each task's submit.
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

// stepID returns the id of the step at the place in the plan of the parent.
func (t *task) stepID(place int) uint64 {
	if submitted := len(t.plan.Steps) - len(t.added); place >= submitted {
		return t.added[place-submitted]
	}
	return t.id + 1 + uint64(place)
}

// grown is a step that was added to a parent.
type grown struct {
	id     uint64
	step   history.Step
	on     []uint64 // ids of those that it depends on
	submit submit
}

// addAdded lets the plans of parents have the steps that were added to them, in the order of their
// ids. All calls for one step add the same, until one was answered.
func (x *index) addAdded() {
	first, answered := map[uint64]int64{}, map[uint64]bool{}
	steps := map[uint64]map[uint64]*grown{} // by parent and id
	for i, op := range x.took(history.AddSteps) {
		call, before := first[op.TaskID]
		if !before || op.Call < call {
			call = op.Call
			first[op.TaskID] = call
		}
		if op.Outcome == history.Unknown {
			continue
		}
		answered[op.TaskID] = true
		p := x.task(op.Added.ParentID)
		if p.parent = true; steps[p.id] == nil {
			steps[p.id] = map[uint64]*grown{}
		}
		for place, id := range op.Added.IDs {
			g := steps[p.id][id]
			if g == nil {
				g = &grown{id: id, step: op.Plan.Steps[place], submit: submit{ret: never, acked: -1, maxAttempts: op.Plan.Steps[place].MaxAttempts}}
				for _, on := range g.step.DependsOn {
					g.on = append(g.on, op.Added.IDs[on])
				}
				steps[p.id][id] = g
			}
			if g.submit.call = call; op.Return < g.submit.ret {
				g.submit.ret, g.submit.acked = op.Return, i
			}
		}
	}
	for id, added := range steps {
		if p := x.tasks[id]; p.plan != nil {
			p.grow(added)
		}
	}
	for by := range first {
		if !answered[by] {
			x.hiddenParents = true // its parent is known once the steps are
			x.hiddenAdds = append(x.hiddenAdds, by)
		}
	}
}

// grow lets the plan have the steps.
func (t *task) grow(added map[uint64]*grown) {
	plan := *t.plan
	plan.Steps = slices.Clone(plan.Steps)
	submitted := len(plan.Steps)
	t.added = slices.Sorted(maps.Keys(added))
	for _, id := range t.added {
		g := added[id]
		g.step.DependsOn = nil
		for _, on := range g.on {
			g.step.DependsOn = append(g.step.DependsOn, submitted+slices.Index(t.added, on))
		}
		t.adds = append(t.adds, g.submit)
		plan.Steps = append(plan.Steps, g.step)
	}
	t.plan = &plan
}

// addSteps adds the steps of each parent, which were submitted with it or added later.
func (x *index) addSteps() {
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		p := x.tasks[id]
		if p.plan == nil {
			continue
		}
		p.parent = true
		for place := range p.plan.Steps {
			if t := x.task(p.stepID(place)); t.submit == nil { // else by another call: keys or ids say so
				t.parentID, t.place = id, place
				t.submit = &submit{call: p.submit.call, ret: p.submit.ret, acked: p.submit.acked, maxAttempts: p.plan.Steps[place].MaxAttempts}
				if submitted := len(p.plan.Steps) - len(p.added); place >= submitted {
					t.submit = &p.adds[place-submitted]
				}
			}
		}
	}
	for _, by := range x.hiddenAdds {
		if p := x.tasks[x.task(by).parentID]; p != nil {
			p.openPlan = true
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

// ofHidden reports whether the task is a hidden parent or one of its steps. Little can be said
// about the steps and the end of such a parent.
func (x *index) ofHidden(t *task) bool { return t.hidden || t.orphan() && x.hiddenParents }

// addClaims combines the calls of each claim.
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
		// A repeat returns its own token with the task's current state, which may be claimed again.
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

// claimOf returns the task's claim with the token, nil if no answer contains it.
func (t *task) claimOf(token uint64) *claim {
	if i := slices.IndexFunc(t.claims, func(c claim) bool { return c.token == token }); i >= 0 {
		return &t.claims[i]
	}
	return nil
}

// addActs finds the tasks that an action on many tasks may have changed: those of its type that may
// have existed.
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

// ended returns the latest time at which op's call may have taken effect.
func ended(op *history.Op) int64 {
	if op.Outcome == history.Unknown {
		return never
	}
	return op.Return
}

// mayHave reports whether a call of the kind, for the task or for all tasks of its type, may have
// had an effect.
func (x *index) mayHave(t *task, kind history.Kind) bool {
	for range x.of(t, kind) {
		return true
	}
	return slices.ContainsFunc(t.acts, func(i int) bool { return x.ops[i].Action == string(kind) })
}

// made identifies a call: all ops of one call have the same value.
type made struct {
	process int
	call    int64
}

func madeBy(op *history.Op) made { return made{op.Process, op.Call} }

// goesOn reports whether op i belongs to the same call as the op before it.
func (x *index) goesOn(i int) bool { return i > 0 && madeBy(&x.ops[i]) == madeBy(&x.ops[i-1]) }
