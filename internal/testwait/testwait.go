// Package testwait waits in tests for what is going to be.
package testwait

import (
	"testing"
	"time"
)

// Patience bounds the waits of tests: on a busy machine what takes a moment takes long.
const Patience = time.Minute

// lookInterval is how often a condition is looked at.
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
