package main

import (
	"bytes"
	"strings"
	"testing"
)

// A node that holds a few tasks is measured like one that holds many.
func TestScale(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"scale", "--binary", binary(), "--tasks", "20000", "--nodes", "1",
		"--pairs", "1", "--load", "2000", "--warm-up", "10ms", "--conns", "4", "--reading", "100ms",
	}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"20000 tasks of 256 bytes", "snapshots: all nodes done", "beside the snapshots", "beside a search of all tasks", "median ratio", "linearizable reads", "each node is ready"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not tell of %q:\n%s", want, &out)
		}
	}
}
