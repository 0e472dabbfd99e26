package diary

import (
	"math/rand"
	"time"
)

// The task types: handlers of Timed have a timeout, which is never reached.
const (
	Plain = "plain"
	Timed = "timed"
)

// Params are the params of a task.
type Params struct {
	Seed int64 `json:"seed"`
	// Fails means that the task should fail for good, by a Permanent error.
	Fails bool `json:"fails,omitempty"`
	// Then are the idempotency keys of tasks that are submitted when it completes.
	Then []string `json:"then,omitempty"`
}

// Outcome is the end of a handler.
type Outcome string

// The outcomes.
const (
	Completes Outcome = "completes"
	FailsOnce Outcome = "fails"  // then the task is tried again
	FailsAll  Outcome = "failed" // Permanent
	Panics    Outcome = "panics"
	Snoozes   Outcome = "snoozes"
	Lost      Outcome = "lost"      // its context had ended: another worker may have the task
	Stops     Outcome = "stops"     // its context had ended: the worker stops
	Refused   Outcome = "refused"   // the store has seen a later claim
	Unwritten Outcome = "unwritten" // the store did not answer
)

// Act says what a handler should do.
type Act struct {
	Outcome Outcome
	// Leases is the length of its work, in leases.
	Leases float64
	// Look is the interval between looks at its context.
	Look time.Duration
	// Late makes it write again some time after it has seen its context end, like a process
	// that was stopped between looking and writing.
	Late bool
}

const (
	leasesMin, leasesMax = 0.1, 3
	lookMin, lookMax     = 2 * time.Millisecond, 60 * time.Millisecond
)

// Draw returns the act for the claim with the token. Most are short.
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
