package fsm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// TestParents_comeToTheirEnd applies random logs. After each entry, a parent whose
// steps have not ended has one that does not wait for others. In the end all types
// are opened, time goes on and workers complete whatever they get: then nothing is
// left but parents that wait for their processor.
func TestParents_comeToTheirEnd(t *testing.T) {
	t.Parallel()
	for seed := range seeds(60) {
		g := lifeGenerator{newGenerator(rand.New(rand.NewPCG(seed, 11)).IntN)}
		m := newSmall()
		apply := func(commands ...command.Command) Applied {
			g.pass()
			a := mustApplyTo(t, m, testEntry{g.index, g.stamp, commands})
			if err := m.checkProgress(); err != nil {
				t.Fatalf("seed %d, entry %d: %v", seed, g.index, err)
			}
			return a
		}
		apply(command.SetLevel{Level: record.FeatureLevel})
		for range 120 {
			apply(g.command(m), g.op(m), g.themedSteps(m), g.opOfParent(m))
		}
		for _, name := range []string{"mail", "scan", "video"} {
			apply(command.SetType{Type: name, Set: record.TypePaused | record.TypeMaxClaimed | record.TypeRateLimit})
			for _, key := range []string{"ann", "ben"} {
				apply(command.SetShare{Type: name, ShareKey: key})
			}
		}
		for idle := 0; idle < 3; idle++ { // time alone may be what is missing
			g.stamp.T += 30 * dayMS
			apply(command.Tick{}, command.ClaimNext{WorkerID: "w9", Limit: 1000})
			var ends []command.Command
			for _, l := range liveLeases(m) {
				ends = append(ends, command.Complete{Hold: command.Hold{ID: l.TaskID, WorkerID: m.Get(l.TaskID).WorkerID, Token: l.Token}})
			}
			if apply(ends...); len(ends) > 0 {
				idle = 0
			}
		}
		for id, left := range m.tasks.All() {
			waits := left.Status == record.StatusRunning && left.Parent().Plan.ByClaim && m.parents.byID[id].open() == 0
			if !left.Status.Ended() && !waits {
				t.Errorf("seed %d: task %d is %v for ever: %+v", seed, id, left.Status, *left)
			}
		}
	}
}

// checkProgress looks for parents whose steps all wait for each other, or for what
// has ended without being completed.
func (m *Machine) checkProgress() error {
	for id, t := range m.tasks.All() {
		if t.Status != record.StatusRunning {
			continue
		}
		ends := false // a step that waits for a signal fails in time
		for place := range t.Parent().Plan.Steps {
			ends = ends || m.Get(t.Parent().Plan.IDOf(id, place)).Opts().SignalUntil != 0
		}
		if ps := m.parents.byID[id]; !ends && ps.open() > 0 && ps.open() == int(ps.counts[record.StatusBlocked]) {
			return fmt.Errorf("the steps of %d that have not ended are all blocked", id)
		}
	}
	return nil
}
