package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// binary is the claimq that the tests run, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "claimq-jepsen-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = procs.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// newCluster starts nodes that end with the test.
func newCluster(t *testing.T, nodes int, flags ...string) *procs.Cluster {
	t.Helper()
	c, err := procs.New(procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: nodes, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			for _, n := range c.Nodes {
				t.Logf("%s printed at last:\n%s", n.ID, n.LogTail(30))
			}
		}
	})
	if err := c.StartAll(deadline(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// stepTimeout bounds one step of a test with processes, on a slow machine.
const stepTimeout = time.Minute

// deadline returns a context for one step.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	t.Cleanup(cancel)
	return ctx
}

// buildPlanted builds a claimq that drops a write now and then.
func buildPlanted(t *testing.T) string {
	t.Helper()
	path, err := procs.Build(t.Context(), t.TempDir(), "plant")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
