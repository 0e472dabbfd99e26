package sim

import (
	"fmt"
	"io"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Config says what to run. The same config gives the same run.
type Config struct {
	Seed  uint64
	Steps int // of the plan, at least 1
	// Only selects steps of the plan, ascending; nil = all.
	Only []int
	// Trace, if not nil, gets a line for everything that happens.
	Trace io.Writer
	// OnEntry, if not nil, gets each committed entry, in order.
	OnEntry func(index uint64, entry []byte)
}

// Report is the outcome of a run.
type Report struct {
	Commands int      // committed
	Entries  int      // committed
	Virtual  int64    // nanoseconds of simulated time
	Hash     [16]byte // of the final state with its trail; zero if the run failed
	Failure  string   // the first problem, "" if none
}

// drain is the time for which a run goes on after its last step: longer than any call.
const drain = callTimeout + 5*second

// Run runs one seed.
func Run(cfg Config) (report Report) {
	p, steps := makePlan(cfg.Seed, cfg.Steps)
	w := newWorld(cfg.Seed, p, cfg.Trace)
	w.onEntry = cfg.OnEntry
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v", r)
		}
		report = Report{Commands: w.commands, Entries: len(w.log), Virtual: w.now, Hash: w.hash, Failure: w.failure}
	}()
	w.elect(w.replicas[0])
	only := cfg.Only
	for i, s := range steps {
		w.until(w.now + s.gap)
		if w.failure != "" {
			break
		}
		if cfg.Only != nil {
			if len(only) == 0 {
				break
			}
			if only[0] != i {
				continue
			}
			only = only[1:]
		}
		w.do(s)
	}
	w.finish()
	return report
}

func newWorld(seed uint64, p profile, trace io.Writer) *world {
	w := &world{seed: seed, profile: p, out: trace, state: fsm.New(), files: []*file{nil}, watch: newWatch()}
	for i := range w.replicas {
		w.replicas[i] = &replica{w: w, name: fmt.Sprintf("n%d", i+1), rate: p.rates[i], wall: p.walls[i]}
	}
	d := newDice(seed, 2)
	for i := range p.workers {
		w.workers = append(w.workers, &worker{w: w, name: fmt.Sprintf("w%d", i+1), rate: pick[int64](d, -500, 0, 500)})
	}
	return w
}

// finish stops all faults, waits until everything has ended, and checks what must hold
// then.
func (w *world) finish() {
	w.quiet = true
	w.until(w.now + drain)
	if w.failure != "" {
		return
	}
	if w.leader == nil || !w.leader.serving {
		w.fail("no leader serves, long after the last fault")
		return
	}
	served := false
	w.call(newDice(w.seed, 3), "last", command.Submit{Tasks: []fsm.NewTask{{Type: "ta", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts, Key: "last"}}}, true,
		func(_ *call, o outcome) { served = o.code == "" })
	w.until(w.now + 5*second)
	if w.failure == "" && !served {
		w.fail("a submit has no answer, long after the last fault")
	}
	if w.failure == "" {
		w.last()
	}
	if w.failure == "" {
		w.watch.last(w, w.leader.clock.Now().T)
	}
}

// last checks that all possible copies are the same at the end of the run.
func (w *world) last() {
	w.write(nil, nil) // writes anything captured, however long ago
	w.capture(nil, nil)
	w.write(nil, nil)
	e := w.log[len(w.log)-1]
	e.hash = hashOf(w.state)
	w.hash = e.hash
	for _, f := range w.files {
		w.copyOf(f)
	}
}
