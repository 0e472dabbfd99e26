package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/plants"
)

// buildDir is the folder of the tests' binaries; TestMain removes it.
var buildDir string

// binary returns the claimq for the tests, built once. It is built inside a test, not in
// TestMain, because files read before the tests begin do not count when the go command
// decides whether they must run again.
var binary = sync.OnceValue(func() string {
	path, err := procs.Build(context.Background(), buildDir)
	if err != nil {
		panic(err)
	}
	return path
})

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if buildDir, err = os.MkdirTemp("", "claimq-jepsen-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}

// newCluster starts nodes that end with the test.
func newCluster(t *testing.T, nodes int, flags ...string) *procs.Cluster {
	t.Helper()
	c, err := procs.New(procs.Config{Binary: binary(), Dir: t.TempDir(), Nodes: nodes, Flags: flags})
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

// buildPlanted builds a claimq that sometimes drops a write.
func buildPlanted(t *testing.T) string {
	t.Helper()
	path, err := plants.DroppedWrite().Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}
