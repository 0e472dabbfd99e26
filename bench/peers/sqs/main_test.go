package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for want, of := range map[float64][]float64{2: {3, 1, 2}, 2.5: {4, 1, 3, 2}, 7: {7}} {
		if got := median(of); got != want {
			t.Errorf("median of %v is %v", of, got)
		}
	}
}

// Both are measured as often, and what fails ends the comparison.
func TestCompare(t *testing.T) {
	t.Parallel()
	fake := func(name string, err error) system {
		return system{
			name:    name,
			prepare: func(context.Context) error { return nil },
			send:    func(context.Context) error { return err },
			receive: func(context.Context) ([]string, error) { return make([]string, 10), nil },
			delete:  func(context.Context, []string) error { return nil },
		}
	}
	c := comparison{rounds: 1, workers: 2, time: 10 * time.Millisecond}
	var out strings.Builder
	if err := c.compare(t.Context(), &out, [2]system{fake("a", nil), fake("b", nil)}); err != nil || !strings.HasPrefix(out.String(), "a: ") || !strings.Contains(out.String(), "; b: ") {
		t.Errorf("%q, %v", out.String(), err)
	}
	broken := errors.New("broken")
	if err := c.compare(t.Context(), &out, [2]system{fake("a", nil), fake("b", broken)}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
