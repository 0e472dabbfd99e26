// Package proof decides how many inputs tests try that have many: few by default, so that
// `go test ./...` is quick, and all if the variable CLAIMQ_PROOF is set, as `make proof` does.
// There is no other such switch.
package proof

import (
	"flag"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Env names the variable that makes tests try everything.
const Env = "CLAIMQ_PROOF"

// Whole reports whether tests try everything. It must be called by a test, not before the
// tests begin: the go command would not notice the variable, and show a result of the other
// form from its cache.
func Whole() bool { return os.Getenv(Env) != "" }

// Count returns how many of something a test tries. It must be called as Whole must.
func Count[T ~int | ~uint64](short, whole T) T {
	if Whole() {
		return whole
	}
	return short
}

// checksFlag is rapid's flag, and checksShort what is tried unless it is given.
const (
	checksFlag  = "rapid.checks"
	checksShort = "20"
)

var shorten = sync.OnceValue(func() (err error) {
	given := Whole()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == checksFlag })
	if !given {
		err = flag.Set(checksFlag, checksShort)
	}
	return err
})

// Check is rapid.Check with a fifth of its random inputs by default.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if err := shorten(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, property)
}
