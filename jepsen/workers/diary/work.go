package diary

import (
	"math/rand"
	"time"
)

// The task types: Timed is one whose handlers have a timeout, which is never
// reached.
const (
	Plain = "plain"
	Timed = "timed"
)

// Params are those of a task.
type Params struct {
	Seed int64 `json:"seed"`
	// Fails says that the task is to end as failed, by a Permanent error.
	Fails bool `json:"fails,omitempty"`
	// Then are the idempotency keys of tasks that are submitted when it completes.
	Then []string `json:"then,omitempty"`
}

// Outcome is what a handler does at its end.
type Outcome string

// The outcomes.
const (
	Completes Outcome = "completes"
	FailsOnce Outcome = "fails"  // and the task is tried again
	FailsAll  Outcome = "failed" // Permanent
	Panics    Outcome = "panics"
	Snoozes   Outcome = "snoozes"
	Lost      Outcome = "lost"      // its context had ended: somebody else may have the task
	Stops     Outcome = "stops"     // its context had ended: the worker stops
	Refused   Outcome = "refused"   // the store has heard of a later claim
	Unwritten Outcome = "unwritten" // the store did not answer
)

// Act is what a handler is to do.
type Act struct {
	Outcome Outcome
	// Leases is how long it works, in leases.
	Leases float64
	// Look is how often it looks at its context.
	Look time.Duration
	// Late says that it writes once more when it has seen its context end, and some
	// time has passed: as one that was stopped between looking and writing.
	Late bool
}

const (
	leasesMin, leasesMax = 0.1, 3
	lookMin, lookMax     = 2 * time.Millisecond, 60 * time.Millisecond
)

// Draw returns what the handler of the claim with the token is to do. Most are
// short.
func (p Params) Draw(token int64) Act {
	rng := rand.New(rand.NewSource(p.Seed*1_000_003 + token))
	a := Act{Outcome: Completes, Leases: leasesMin, Late: rng.Intn(4) == 0}
	if rng.Intn(3) == 0 {
		a.Leases += rng.Float64() * (leasesMax - leasesMin)
	} else {
		a.Leases += rng.Float64() * 0.5
	}
	a.Look = lookMin + time.Duration(rng.Int63n(int64(lookMax-lookMin)))
	switch n := rng.Intn(100); {
	case n < 12:
		a.Outcome = FailsOnce
	case n < 17:
		a.Outcome = Panics
	case n < 25:
		a.Outcome = Snoozes
	case p.Fails:
		a.Outcome = FailsAll
	}
	return a
}
