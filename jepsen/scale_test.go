package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// A node that holds a few tasks is measured as one that holds many is.
func TestScale(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"scale", "--binary", binary(), "--tasks", "20000", "--nodes", "1",
		"--pairs", "1", "--window", "300ms", "--conns", "4", "--reading", "100ms",
	}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"20000 tasks of 256 bytes", "snapshot of", "beside the snapshots", "every call  beside", "linearizable reads", "is ready"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not tell of %q:\n%s", want, &out)
		}
	}
}

// Slow calls that were begun one soon after the other are one stall.
func TestStalls(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	load := &windowLoad{conns: []*windowConn{
		{calls: []timedCall{{callSubmit, at(10), 5 * time.Millisecond}, {callClaim, at(200), 90 * time.Millisecond}, {callClaim, at(900), 60 * time.Millisecond}}},
		{calls: []timedCall{{callSubmit, at(150), 120 * time.Millisecond}, {callClaim, at(1100), 70 * time.Millisecond}}},
	}}
	windows := []window{{beside: true, from: at(100), to: at(1000)}, {from: at(1000), to: at(2000)}}
	got := stalls(load, windows, true)
	want := []stall{
		{window: 1, after: 50 * time.Millisecond, calls: 2, worst: 120 * time.Millisecond},
		{window: 1, after: 800 * time.Millisecond, calls: 1, worst: 60 * time.Millisecond},
	}
	if !slices.Equal(got, want) {
		t.Errorf("stalls %+v, want %+v", got, want)
	}
}
