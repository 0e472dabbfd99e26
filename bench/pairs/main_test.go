package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// The test compares a build with itself.
func TestPairs(t *testing.T) {
	t.Parallel()
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := pairs{old: binary, changed: binary, rounds: 1, tasks: 300, dir: t.TempDir(), readTime: 50 * time.Millisecond, warmUp: time.Millisecond}
	if err := p.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^reads/s +[1-9]\d* before, +[1-9]\d* after; ratio .* of 1 pairs.*\nreads µs +[1-9]\d* before, .*\n` +
		`tasks/s +[1-9]\d* before, +[1-9]\d* after; .*\ntasks µs +[1-9]\d* before, `)
	if !want.MatchString(out.String()) {
		t.Errorf("printed %s", out.String())
	}
	p.old = "/nonexistent"
	if err := p.run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), p.old) {
		t.Errorf("a binary that is not there: %v", err)
	}
}

func TestInTurn(t *testing.T) {
	t.Parallel()
	for round, want := range []string{"01", "10", "01"} {
		order := ""
		got, err := inTurn(round, func(i int) (figure, error) {
			order += string(rune('0' + i))
			return figure{rate: float64(i)}, nil
		})
		if err != nil || order != want || got != (pair{{rate: 0}, {rate: 1}}) {
			t.Errorf("round %d: %s, %v, %v", round, order, got, err)
		}
	}
}
