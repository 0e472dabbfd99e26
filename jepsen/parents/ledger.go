package parents

import (
	"fmt"
	"sync"

	"github.com/claimq/claimq/api/wire"
)

// violationsMax bounds the violations that are kept. All are counted.
const violationsMax = 50

// life is what the trail tells of one task. Places are the numbers of events in
// the order in which they were told, from 1; 0 = not told.
type life struct {
	submitted uint32
	claimed   uint32 // the first claim
	completed uint32
	ended     uint32 // the last event that may be an end
	last      uint32 // the last event of all
	asked     bool   // cancel was asked for

	token      uint64 // of the claim that lives, 0 = none
	status     status // after the last event
	completes  uint8
	ends       uint8 // of a parent
	finalizeds uint8 // of a parent
	finalizer  string
	finalized  uint32

	parent *parent // what it is, or whose step; nil: not known yet
}

// status is what the events of a task make of it.
type status uint8

const (
	open status = iota
	completed
	failed
	cancelled
)

var statusNames = [...]string{"open", "completed", "failed", "cancelled"}

func (s status) String() string { return statusNames[s] }

// parent is a parent whose submit was acknowledged.
type parent struct {
	Shape
	id        uint64
	stepsOpen int  // steps that have not ended
	early     bool // a first step has completed, and processors were told
	cancelled bool // its cancel was acknowledged
}

// Ledger is what is known of all parents. It is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	tasks   []life // by id
	parents []*parent
	byID    map[uint64]*parent
	// unfinished are the parents by claim; some of them may have ended.
	unfinished []*parent

	events     uint32
	kinds      map[string]int
	index      uint64 // of the last event
	sub        uint32
	token      uint64 // the highest that was given out
	endedCount int    // parents that have ended
	notify     func(p *parent, all bool)

	violations     []string
	violationCount int
}

// newLedger returns an empty ledger. notify is called, with the ledger locked,
// for a parent by claim once its first step has completed, and again (all) once
// all have ended.
func newLedger(notify func(p *parent, all bool)) *Ledger {
	return &Ledger{byID: map[uint64]*parent{}, kinds: map[string]int{}, notify: notify}
}

// violate notes what must not be. The ledger is locked.
func (l *Ledger) violate(format string, args ...any) {
	l.violationCount++
	if len(l.violations) < violationsMax {
		l.violations = append(l.violations, fmt.Sprintf(format, args...))
	}
}

// Violate notes what must not be.
func (l *Ledger) Violate(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violate(format, args...)
}

// life returns what is known of the task. The ledger is locked.
func (l *Ledger) life(id uint64) *life {
	for uint64(len(l.tasks)) <= id {
		l.tasks = append(l.tasks, life{})
	}
	return &l.tasks[id]
}

// register notes that the submit of the parent was acknowledged with the id. Its
// events may have been told before.
func (l *Ledger) register(s Shape, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &parent{Shape: s, id: id}
	if other := l.byID[id]; other != nil {
		l.violate("parents %d and %d have the same id, %d", other.Number, s.Number, id)
		return
	}
	l.byID[id] = p
	l.parents = append(l.parents, p)
	if p.ByClaim {
		l.unfinished = append(l.unfinished, p)
	}
	l.life(id + uint64(len(s.DependsOn)))
	if l.tasks[id].parent != nil {
		l.violate("parent %d is task %d, which is a step of parent %d", s.Number, id, l.tasks[id].parent.Number)
		return
	}
	l.tasks[id].parent = p
	if l.tasks[id].status != open {
		l.endedCount++
	}
	for place := range s.DependsOn {
		step := &l.tasks[id+1+uint64(place)]
		if step.parent != nil {
			l.violate("step %d of parent %d is task %d, which is parent %d or a step of it", place, s.Number, id+1+uint64(place), step.parent.Number)
			return
		}
		step.parent = p
		if step.status == open {
			p.stepsOpen++
		}
	}
	l.wake(p)
}

// wake tells processors of a parent by claim. The ledger is locked.
func (l *Ledger) wake(p *parent) {
	if !p.ByClaim || l.tasks[p.id].status != open {
		return
	}
	if p.stepsOpen == 0 {
		l.notify(p, true)
		return
	}
	if p.early || p.stepsOpen == len(p.DependsOn) {
		return
	}
	p.early = true
	l.notify(p, false)
}

// cancelledNow notes that the parent's cancel was acknowledged.
func (l *Ledger) cancelledNow(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID[id].cancelled = true
}

// hasEnded reports whether the trail has told the parent's end.
func (l *Ledger) hasEnded(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life(id).status != open
}

// counts returns how many parents are known, how many of them have ended, and
// how many events were told.
func (l *Ledger) counts() (known, ended, events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parents), l.endedCount, int(l.events)
}

// tell takes the next event of the trail.
func (l *Ledger) tell(e *wire.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	l.kinds[e.Event]++
	if l.events > 1 && (e.Index < l.index || e.Index == l.index && e.Sub != l.sub+1 || e.Index > l.index && e.Sub != 0) {
		l.violate("event %d.%d follows event %d.%d", e.Index, e.Sub, l.index, l.sub)
	}
	l.index, l.sub = e.Index, e.Sub
	if e.TaskID == nil {
		return
	}
	t := l.life(*e.TaskID)
	if (t.submitted == 0) != (e.Event == "submitted") {
		l.violate("task %d begins with submitted, once: %s", *e.TaskID, describe(e))
	}
	t.last = l.events
	before := t.status
	l.take(t, e)
	l.changed(t, *e.TaskID, before)
}

// take takes the event into the life of its task.
func (l *Ledger) take(t *life, e *wire.Event) {
	switch e.Event {
	case "submitted":
		t.submitted = l.events
	case "claimed":
		l.claim(t, e)
	case "completed":
		if t.completes++; t.completes > 1 {
			l.violate("task %d completed more than once: %s", *e.TaskID, describe(e))
		}
		t.completed = l.events
		l.over(t, e, completed)
	case "failed":
		l.over(t, e, failed)
	case "cancelled":
		l.over(t, e, cancelled)
	case "released", "lease_expired":
		l.over(t, e, open)
	case "requeued", "scheduled": // after a failure that was not the last one
		if t.status == failed {
			t.status = open
		}
	case "finalized":
		t.finalizeds++
		t.finalized = l.events
		if e.WorkerID != nil {
			t.finalizer = *e.WorkerID
		}
	case "cancel_requested":
		t.asked = true
	case "finalization_claimed":
		switch {
		case t.status != open:
			l.violate("task %d has ended as %s: %s", *e.TaskID, t.status, describe(e))
		case e.ClaimToken == nil || *e.ClaimToken <= l.token:
			l.violate("after token %d: %s", l.token, describe(e))
		default:
			l.token = *e.ClaimToken
		}
	default:
		l.violate("nobody asked for it: %s", describe(e))
	}
}

// claim takes the event of a claim.
func (l *Ledger) claim(t *life, e *wire.Event) {
	switch {
	case e.ClaimToken == nil:
		l.violate("a claim without a token: %s", describe(e))
		return
	case *e.ClaimToken <= l.token:
		l.violate("token %d is given out after token %d: %s", *e.ClaimToken, l.token, describe(e))
	case t.status != open:
		l.violate("task %d is claimed after it was %s: %s", *e.TaskID, t.status, describe(e))
	case t.token != 0:
		l.violate("task %d is claimed while claim %d lives: %s", *e.TaskID, t.token, describe(e))
	}
	l.token, t.token = max(l.token, *e.ClaimToken), *e.ClaimToken
	if t.claimed == 0 {
		t.claimed = l.events
	}
}

// over takes the end of a claim, of a task, or of both.
func (l *Ledger) over(t *life, e *wire.Event, to status) {
	if t.token != 0 && e.ClaimToken != nil && *e.ClaimToken != t.token && to != cancelled {
		l.violate("the claim of task %d that lives is %d: %s", *e.TaskID, t.token, describe(e))
	}
	if t.status != open && (t.status != failed || to != cancelled) { // a failure after a cancel was asked for ends as cancelled
		l.violate("task %d has ended as %s before: %s", *e.TaskID, t.status, describe(e))
	}
	t.token = 0
	if to != open {
		t.status, t.ended = to, l.events
		t.ends++
	}
}

// changed does what follows from a task's event.
func (l *Ledger) changed(t *life, id uint64, before status) {
	if t.parent == nil || (before == open) == (t.status == open) {
		return
	}
	if t.parent.id == id {
		l.endedCount++
		return
	}
	if t.status == open {
		t.parent.stepsOpen++
		return
	}
	t.parent.stepsOpen--
	l.wake(t.parent)
}

func describe(e *wire.Event) string {
	s := fmt.Sprintf("%d.%d %s", e.Index, e.Sub, e.Event)
	if e.TaskID != nil {
		s += fmt.Sprintf(" task %d", *e.TaskID)
	}
	if e.ClaimToken != nil {
		s += fmt.Sprintf(" token %d", *e.ClaimToken)
	}
	if e.WorkerID != nil {
		s += " of " + *e.WorkerID
	}
	return s + " " + e.Message
}
