// Package testwait lets tests wait for conditions.
package testwait

import (
	"testing"
	"time"
)

// Patience bounds the waits of tests. It is long because busy machines are slow.
const Patience = time.Minute

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
