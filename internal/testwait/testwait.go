// Package testwait lets tests wait for conditions.
package testwait

import (
	"flag"
	"strconv"
	"testing"
	"time"
)

// Patience bounds the waits of tests. It is long because busy machines are slow.
const Patience = time.Minute

// Together sets the number of parallel tests of a package that run at a time, unless
// -parallel sets it: this many with the race detector, which makes them compute several
// times as much, and twice as many without it. It is for tests that wait for nodes and
// timers more than they compute, since by default only as many run as there are
// processors. TestMain calls it before m.Run.
func Together(tests int) {
	if !raced {
		tests *= 2
	}
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}

// lookInterval is the interval between checks of a condition.
const lookInterval = 5 * time.Millisecond

// Until waits until the condition is true, and fails the test if it takes too long.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for deadline := time.Now().Add(Patience); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
