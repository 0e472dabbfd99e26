package sim

import "fmt"

const (
	crewPause     = 300 * millisecond
	crewRoundsMax = 300
)

// crew works off what parents are left when nothing goes wrong any more: it
// claims and completes whatever there is, until all parents have ended. Those that
// operators left waiting for a step that did not complete need one more.
func (w *world) crew() {
	d := newDice(w.seed, 4)
	for round := 0; round < crewRoundsMax && w.failure == "" && w.anyRunning(); round++ {
		name := fmt.Sprintf("crew%d", round)
		if round%8 == 0 {
			w.openTypes(d, name)
		}
		w.crewWorks(d, name)
		for _, t := range w.model.tasks {
			if t != nil {
				w.help(d, name, t)
			}
		}
		w.until(w.now + crewPause)
	}
}

func (w *world) anyRunning() bool {
	for _, t := range w.model.tasks {
		if t != nil && t.status == running {
			return true
		}
	}
	return false
}

// openTypes lets everything be claimed.
func (w *world) openTypes(d *dice, name string) {
	for t := range w.profile.types {
		w.call(d, name, &command{
			verb: verbSetType, kind: "t" + string(rune('a'+t)), changes: typeChange{paused: true, claims: true, rate: true},
		}, true, nil)
	}
}

// crewWorks claims and completes.
func (w *world) crewWorks(d *dice, name string) {
	c := &command{verb: verbClaimNext, worker: "crew", leaseMS: 20_000, limit: 20, request: "q-" + name}
	w.call(d, name, c, true, func(r reply, _ bool) {
		if !r.ok {
			return
		}
		for i := range r.o.result.Claims {
			cl := &r.o.result.Claims[i]
			w.call(d, name, &command{verb: verbComplete, id: cl.Task.ID, worker: "crew", token: cl.Token}, true, nil)
		}
	})
}

// help does what no worker can: what waits for its time is let go, what waits for
// a processor is finalized, and what waits for a step that has ended otherwise is
// retried or cancelled.
func (w *world) help(d *dice, name string, t *task) {
	switch {
	case t.status == scheduled && (t.of != 0 || t.options.group != ""):
		w.call(d, name, &command{verb: verbRetry, id: t.id}, false, nil)
	case t.status == running && t.plan.byClaim && w.model.over(t):
		w.call(d, name, &command{verb: verbFinalize, id: t.id, worker: "crew", result: "1"}, true, nil)
	case t.status == blocked && w.model.waitsInVain(t) && t.id%2 == 0:
		w.call(d, name, &command{verb: verbCancel, id: t.of}, true, nil)
	case t.status == blocked && w.model.waitsInVain(t):
		w.call(d, name, &command{verb: verbRetry, id: t.of, add: 1}, false, nil)
	}
}

// waitsInVain reports whether something that the step depends on has ended and not
// completed: an operator has retried the step and not that.
func (m *model) waitsInVain(s *task) bool {
	for _, on := range s.plan.steps[s.place()].on {
		if before := m.find(s.of + 1 + uint64(on)); before.status == failed || before.status == cancelled {
			return true
		}
	}
	return false
}
