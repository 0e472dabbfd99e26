package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Spans of simulated time are nanoseconds since the run's start.
const (
	millisecond = int64(time.Millisecond)
	second      = int64(time.Second)
	minute      = int64(time.Minute)
)

// epoch is the time on a correct wall clock at the start.
const epoch = int64(1_750_000_000) * second

const replicaCount = 3

// world is one run: the simulation and its checks. It belongs to one goroutine.
type world struct {
	seed    uint64
	profile profile
	now     int64
	events  []timed // future ones, the next one last

	log      []*entry // committed, in order; complete, for copies
	replicas [replicaCount]*replica
	leader   *leader   // the one whose entries commit; nil: none
	deposed  []*leader // those that do not know it yet
	lost     *entry    // in flight when its leader was deposed; the next leader commits it
	changes  int       // of leader
	entries  uint64    // ever put in flight
	quiet    bool      // no more faults: the run is ending

	// state is the result of all committed entries without restores; ids and tokens are the
	// highest that it gave out.
	state       *fsm.Machine
	ids, tokens uint64

	files   []*file         // nil for none, and the last written snapshots
	taken   []*fsm.Snapshot // captured and not yet written: two that must be the same
	takenAt int             // applied entries at that time

	watch   *watch
	workers []*worker
	sent    []*message        // the last ones, for late and duplicated deliveries
	late    []command.Command // expiries and slots, for later leaders
	onEntry func(index uint64, entry []byte)

	commands int // committed

	failure string   // the first problem, "" so far
	hash    [16]byte // of the final state
	out     io.Writer
}

// The numbers of things to remember that come again when it is too late: each worker's claims
// that are over, messages, and duties of leaders.
const (
	overMax = 8
	sentMax = 32
	lateMax = 8
)

// lastOf returns the last elements of all and more, at most most.
func lastOf[T any](most int, all []T, more ...T) []T {
	all = append(all, more...)
	return all[max(len(all)-most, 0):]
}

// timed is an event with its time.
type timed struct {
	at int64
	fn func()
}

// after calls fn after d, behind all events of the same time.
func (w *world) after(d int64, fn func()) {
	at := w.now + max(d, 0)
	i, _ := slices.BinarySearchFunc(w.events, at, func(e timed, at int64) int {
		if e.at > at {
			return -1
		}
		return 1
	})
	w.events = slices.Insert(w.events, i, timed{at, fn})
}

// until handles the events up to the time at, and leaves the clock there.
func (w *world) until(at int64) {
	for n := len(w.events) - 1; w.failure == "" && n >= 0 && w.events[n].at <= at; n = len(w.events) - 1 {
		e := w.events[n]
		w.events = w.events[:n]
		w.pass(e.at)
		e.fn()
	}
	w.pass(at)
}

// pass advances the clock.
func (w *world) pass(at int64) {
	if at <= w.now {
		return
	}
	w.watch.pass(w, at)
	w.now = at
}

// fail records a problem. The first one counts and ends the run.
func (w *world) fail(format string, args ...any) {
	if w.failure != "" {
		return
	}
	w.failure = fmt.Sprintf(format, args...)
	w.say("WRONG: %s", w.failure)
}

// say adds a line to the trace, if there is one. Callers on a hot path check out first.
func (w *world) say(format string, args ...any) {
	if w.out == nil {
		return
	}
	fmt.Fprintf(w.out, "%11.6fs  %s\n", float64(w.now)/float64(second), fmt.Sprintf(format, args...))
}

// dice is the randomness of one step, message or entry. Each has its own, so that leaving a step
// out of a run changes the others as little as possible.
type dice struct{ rand.PCG }

func newDice(seed, stream uint64) *dice {
	d := &dice{}
	d.Seed(seed, stream)
	return d
}

// n returns a number in [0, n).
func (d *dice) n(n int64) int64 {
	if n <= 1 {
		return 0
	}
	return int64(d.Uint64() >> 1 % uint64(n))
}

// in returns true with a chance of perMille in a thousand.
func (d *dice) in(perMille int64) bool { return d.n(1000) < perMille }
