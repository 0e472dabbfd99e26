package demo

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/plants"
)

// build builds a binary into a folder.
type build func(ctx context.Context, dir string) (path string, err error)

func honest(ctx context.Context, dir string) (string, error) { return procs.Build(ctx, dir) }

// runDemo runs the demo with a binary, and returns its output and its error.
func runDemo(t *testing.T, with build, tasks int) (string, error) {
	t.Helper()
	binary, err := with(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), demoTimeout)
	defer cancel()
	var out bytes.Buffer
	err = Run(ctx, Config{Binary: binary, Dir: t.TempDir(), Tasks: tasks, Out: &out})
	return out.String(), err
}

// demoTimeout bounds a demo on a slow machine.
const demoTimeout = 2 * time.Minute

// With an honest binary the sums match.
func TestDemo_addsUp(t *testing.T) {
	out, err := runDemo(t, honest, 900)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains([]byte(out), []byte("It adds up.")) {
		t.Errorf("got:\n%s", out)
	}
}

// With a binary that acknowledges a write and drops it, they do not: the demo's count can
// fail.
func TestDemo_noticesADroppedWrite(t *testing.T) {
	out, err := runDemo(t, plants.DroppedWrite().Build, 3000)
	if !errors.Is(err, ErrCount) {
		t.Errorf("got error %v, want %v\n%s", err, ErrCount, out)
	}
}

// Each sum counts what its name says.
func TestTally_sum(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		plan func(b *ledger)
		want sums
	}{
		{"all well", func(*ledger) {}, sums{submitted: 2, completed: 2}},
		{"a task is not there", func(b *ledger) { b.have = b.have[:1] }, sums{submitted: 2, completed: 1, lost: 1, wrong: 1}},
		{"a complete is not there", func(b *ledger) { b.have[0].Status = "pending" }, sums{submitted: 2, completed: 1, lost: 1}},
		{"another result", func(b *ledger) { b.have[0].Result = []byte(`"00"`) }, sums{submitted: 2, completed: 2, wrong: 1}},
		{"done twice", func(b *ledger) { b.completed["1"]++ }, sums{submitted: 2, completed: 2, twice: 1}},
		{"submitted twice", func(b *ledger) { b.add("3", 1) }, sums{submitted: 2, completed: 2, surplus: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newLedger()
			tc.plan(b)
			got := b.sum(b.have)
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if got.ok(2) != (tc.name == "all well") {
				t.Errorf("ok: got %v", got.ok(2))
			}
		})
	}
}
