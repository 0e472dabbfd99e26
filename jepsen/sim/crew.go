package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
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
		for _, t := range w.tasks() {
			w.help(d, name, t)
		}
		w.until(w.now + crewPause)
	}
}

func (w *world) anyRunning() bool { return w.state.Counts()[fsm.StatusRunning] > 0 }

// openTypes lets everything be claimed.
func (w *world) openTypes(d *dice, name string) {
	for t := range w.profile.types {
		w.call(d, name, command.SetType{Type: "t" + string(rune('a'+t)), Set: fsm.TypePaused | fsm.TypeMaxClaimed | fsm.TypeRateLimit}, true, nil)
	}
}

// crewWorks claims and completes.
func (w *world) crewWorks(d *dice, name string) {
	w.call(d, name, command.ClaimNext{WorkerID: "crew", LeaseMS: 20_000, Limit: 20, RequestID: "q-" + name}, true, func(r reply, _ bool) {
		if !r.ok {
			return
		}
		for i := range r.o.result.Claims {
			cl := &r.o.result.Claims[i]
			w.call(d, name, command.Complete{Hold: command.Hold{ID: cl.Task.ID, WorkerID: "crew", Token: cl.Token}}, true, nil)
		}
	})
}

// help does what no worker can: what waits for its time is let go, what waits for
// a processor is finalized, and what waits for a step that has ended otherwise is
// retried or cancelled.
func (w *world) help(d *dice, name string, t *fsm.Task) {
	switch {
	case t.Status == fsm.StatusScheduled && (parentOf(t) != 0 || t.Opts().Group != ""):
		w.call(d, name, command.Retry{ID: t.ID}, false, nil)
	case t.Status == fsm.StatusRunning && t.Opts().Parent.Plan.ByClaim && w.over(t.ID):
		w.call(d, name, command.Finalize{ID: t.ID, ProcessorID: "crew", Result: []byte("1")}, true, nil)
	case t.Status == fsm.StatusBlocked && w.waitsForNothing(t) && t.ID%2 == 0:
		w.call(d, name, command.Cancel{ID: parentOf(t)}, true, nil)
	case t.Status == fsm.StatusBlocked && w.waitsForNothing(t):
		w.call(d, name, command.Retry{ID: parentOf(t), AddAttempts: 1}, false, nil)
	}
}
