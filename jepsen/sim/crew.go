package sim

import (
	"fmt"

	"github.com/claimq/claimq/jepsen/sim/model"
)

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
		for _, t := range w.model.Tasks {
			if t != nil {
				w.help(d, name, t)
			}
		}
		w.until(w.now + crewPause)
	}
}

func (w *world) anyRunning() bool {
	for _, t := range w.model.Tasks {
		if t != nil && t.Status == model.Running {
			return true
		}
	}
	return false
}

// openTypes lets everything be claimed.
func (w *world) openTypes(d *dice, name string) {
	for t := range w.profile.types {
		w.call(d, name, &model.Command{
			Verb: model.VerbSetType, Kind: "t" + string(rune('a'+t)), Changes: model.TypeChange{Paused: true, Claims: true, Rate: true},
		}, true, nil)
	}
}

// crewWorks claims and completes.
func (w *world) crewWorks(d *dice, name string) {
	c := &model.Command{Verb: model.VerbClaimNext, Worker: "crew", LeaseMS: 20_000, Limit: 20, Request: "q-" + name}
	w.call(d, name, c, true, func(r reply, _ bool) {
		if !r.ok {
			return
		}
		for i := range r.o.result.Claims {
			cl := &r.o.result.Claims[i]
			w.call(d, name, &model.Command{Verb: model.VerbComplete, ID: cl.Task.ID, Worker: "crew", Token: cl.Token}, true, nil)
		}
	})
}

// help does what no worker can: what waits for its time is let go, what waits for
// a processor is finalized, and what waits for a step that has ended otherwise is
// retried or cancelled.
func (w *world) help(d *dice, name string, t *model.Task) {
	switch {
	case t.Status == model.Scheduled && (t.Of != 0 || t.Options.Group != ""):
		w.call(d, name, &model.Command{Verb: model.VerbRetry, ID: t.ID}, false, nil)
	case t.Status == model.Running && t.Plan.ByClaim && w.model.Over(t):
		w.call(d, name, &model.Command{Verb: model.VerbFinalize, ID: t.ID, Worker: "crew", Result: "1"}, true, nil)
	case t.Status == model.Blocked && w.model.WaitsForNothing(t) && t.ID%2 == 0:
		w.call(d, name, &model.Command{Verb: model.VerbCancel, ID: t.Of}, true, nil)
	case t.Status == model.Blocked && w.model.WaitsForNothing(t):
		w.call(d, name, &model.Command{Verb: model.VerbRetry, ID: t.Of, Add: 1}, false, nil)
	}
}
