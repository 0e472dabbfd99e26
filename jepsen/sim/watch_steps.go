package sim

import (
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// watchedParent is what is known of a parent and its steps, from the trail, from
// answers, and from how they are after each entry.
type watchedParent struct {
	id   uint64
	plan *model.Plan

	// Of its life, which a retry begins again.
	finalized bool
	ended     bool

	done map[uint64]bool // steps that have completed
	// broken are the steps of which this entry told that they failed, perhaps only an
	// attempt, or were cancelled, and no retry came after that.
	broken []uint64

	// The processor that claimed the finalization, and until when it has it at the
	// least, in real time; "": nobody.
	processor string
	token     uint64
	until     int64
}

// submitSteps takes the steps of a new parent.
func (o *watch) submitSteps(w *world, t *watchedTask, p *model.Plan, now fsm.Stamp) {
	of := &watchedParent{id: t.id, plan: p, done: map[uint64]bool{}}
	o.parents[t.id] = of
	for i := range p.Steps {
		s := watchedOf(t.id+1+uint64(i), &p.Steps[i].Task, now)
		if o.tasks[s.id] != nil {
			w.fail("id %d was given out twice, to a step of parent %d", s.id, t.id)
			return
		}
		o.tasks[s.id], o.stepOf[s.id] = s, of
	}
}

// retried takes an accepted retry of a task: if it is a parent, its steps may run
// again.
func (o *watch) retried(id uint64, now fsm.Stamp) {
	p := o.parents[id]
	if p == nil {
		return
	}
	p.processor = "" // if it had ended
	o.tasks[id].sinceU, o.tasks[id].sinceT = now.U, now.T
	for i := range p.plan.Steps {
		if s := o.tasks[id+1+uint64(i)]; s.holder == 0 && !p.done[s.id] {
			s.runAt, s.endedU, s.endedT = 0, -1, -1
		}
	}
}

// deleted takes the deletion of a task: a parent takes its steps along.
func (o *watch) deleted(id uint64) {
	p := o.parents[id]
	if p == nil {
		return
	}
	delete(o.parents, id)
	for i := range p.plan.Steps {
		delete(o.tasks, id+1+uint64(i))
		delete(o.stepOf, id+1+uint64(i))
	}
}

// steps looks at what the entry told of parents and steps, and how it left them.
func (o *watch) steps(w *world, machine *fsm.Machine, events []event.Event) {
	touched := map[*watchedParent]bool{}
	for i := range events {
		e := &events[i]
		if p := o.parents[e.TaskID]; p != nil {
			touched[p] = true
			o.parentEvent(w, p, e)
		} else if p := o.stepOf[e.TaskID]; p != nil {
			touched[p] = true
			o.stepEvent(w, p, e)
		}
	}
	for p := range touched { // one says it
		o.settledParent(w, machine, p)
		p.broken = nil
	}
}

// parentEvent takes an event about a parent: it ends once in each of its lives.
func (o *watch) parentEvent(w *world, p *watchedParent, e *event.Event) {
	switch e.Kind {
	case event.Retried:
		p.ended, p.finalized, p.broken = false, false, nil
	case event.Finalized:
		if p.finalized || p.ended {
			w.fail("parent %d is finalized twice", p.id)
		}
		p.finalized = true
	case event.Completed, event.Failed, event.Cancelled:
		if p.ended {
			w.fail("parent %d ends twice, now as %v", p.id, e.Kind)
		}
		if p.finalized != (e.Kind != event.Cancelled) {
			w.fail("parent %d ends as %v, it was finalized: %v", p.id, e.Kind, p.finalized)
		}
		p.ended, p.processor = true, ""
		if w.tracing() {
			w.say("  parent %d of %d steps ends: %v, by %q", p.id, len(p.plan.Steps), e.Kind, e.WorkerID)
		}
	default:
	}
}

// stepEvent takes an event about a step: it is handed out only once all that it
// depends on has completed.
func (o *watch) stepEvent(w *world, p *watchedParent, e *event.Event) {
	switch e.Kind {
	case event.Claimed:
		for _, on := range p.plan.Steps[e.TaskID-p.id-1].On {
			if id := p.id + 1 + uint64(on); !p.done[id] {
				w.fail("step %d of parent %d was handed out, step %d, which it depends on, has not completed", e.TaskID, p.id, id)
			}
		}
		if p.ended {
			w.fail("step %d was handed out, its parent %d has ended", e.TaskID, p.id)
		}
	case event.Completed:
		p.done[e.TaskID] = true
	case event.Cancelled, event.Failed, event.Expired:
		p.broken = append(p.broken, e.TaskID)
	case event.Retried:
		p.broken = nil
	default:
	}
}

// settledParent checks how an entry left a parent.
func (o *watch) settledParent(w *world, machine *fsm.Machine, p *watchedParent) {
	t := machine.Get(p.id)
	steps := make([]*fsm.Task, len(p.plan.Steps))
	open := 0
	for i := range steps {
		steps[i] = machine.Get(p.id + 1 + uint64(i))
		if (steps[i] == nil) != (t == nil) {
			w.fail("step %d is there: %v, its parent %d: %v", p.id+1+uint64(i), steps[i] != nil, p.id, t != nil)
			return
		}
		if t != nil && !steps[i].Status.Ended() {
			open++
		}
	}
	switch {
	case t == nil:
		return
	case t.Status.Ended() != p.ended:
		w.fail("parent %d has ended: %v, by the trail: %v", p.id, t.Status.Ended(), p.ended)
	case t.Status.Ended() && open > 0:
		w.fail("parent %d has ended, %d of its steps have not", p.id, open)
	case !t.Status.Ended() && open == 0 && (!p.plan.ByClaim || t.CancelRequested):
		w.fail("parent %d is stuck: all its steps have ended, and it goes on running", p.id)
	case len(p.broken) > 0 && open > 0:
		o.brokenParent(w, p, steps)
	}
}

// brokenParent checks a parent some step of which failed or was cancelled, and
// none was retried since: all others are to be stopped, or those that depend on
// it, of which each is such a step itself.
func (o *watch) brokenParent(w *world, p *watchedParent, steps []*fsm.Task) {
	for at, s := range steps {
		if s.Status.Ended() || s.Status == fsm.StatusClaimed && s.CancelRequested {
			continue
		}
		for _, id := range p.broken {
			by := int(id - p.id - 1)
			cause := steps[by]
			unfinished := cause.Status == fsm.StatusFailed || cause.Status == fsm.StatusCancelled
			if unfinished && (!p.plan.GoesOn || slices.Contains(p.plan.Steps[at].On, by)) {
				w.fail("step %d of parent %d is %v and not stopped, step %d is %v", s.ID, p.id, s.Status, cause.ID, cause.Status)
				return
			}
		}
	}
}

// finalization takes the answer to a processor.
func (o *watch) finalization(w *world, e *entry, c *model.Command, sentAt int64, r *fsm.Result) {
	p, a := o.parents[c.ID], r.Parent
	if p == nil || a == nil {
		return
	}
	another := p.processor != "" && p.processor != c.Worker && e.packedAt < p.until
	switch {
	case c.Verb == model.VerbClaimEnd && a.Outcome == fsm.FinalizationClaimed:
		if another {
			w.fail("%s got the finalization of %d %.6f ms before the time of %s was over", c.Worker, p.id, float64(p.until-e.packedAt)/1e6, p.processor)
		}
		if a.Token <= o.lastToken {
			w.fail("token %d of the finalization of %d was given out after token %d", a.Token, p.id, o.lastToken)
		}
		o.lastToken = a.Token
		p.processor, p.token, p.until = c.Worker, a.Token, sentAt+c.TimeoutMS*millisecond
	case c.Verb == model.VerbClaimEnd && a.Outcome == fsm.FinalizationExtended, c.Verb == model.VerbExtendEnd && a.Done:
		if p.processor != "" && (p.processor != c.Worker || a.Token != p.token) {
			w.fail("%s extended the finalization of %d, which %s has", c.Worker, p.id, p.processor)
		}
		p.until = max(p.until, sentAt+c.TimeoutMS*millisecond)
	case c.Verb == model.VerbReleaseEnd && a.Done:
		if another {
			w.fail("%s released the finalization of %d, which %s has", c.Worker, p.id, p.processor)
		}
		p.processor = ""
	case c.Verb == model.VerbFinalize && r.Code == "" && !a.AlreadyFinalized:
		if another {
			w.fail("%s finalized %d %.6f ms before the time of %s was over", c.Worker, p.id, float64(p.until-e.packedAt)/1e6, p.processor)
		}
		p.processor = ""
	}
}

// lastParents holds the parents of a replica that has everything, at the end: all
// have ended, as nothing went wrong any more.
func (o *watch) lastParents(w *world, machine *fsm.Machine) {
	for _, p := range o.parents {
		o.settledParent(w, machine, p)
		if t := machine.Get(p.id); t != nil && !t.Status.Ended() && w.failure == "" {
			w.fail("parent %d is %v, long after the last fault", p.id, t.Status)
		}
	}
}
