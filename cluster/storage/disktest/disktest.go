// Package disktest provides disks for tests: a log that waits, and a folder in memory.
package disktest

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
)

// GatedLog is a log whose appends wait while its gate is closed.
type GatedLog struct {
	raft.LogStore
	gate    atomic.Pointer[chan struct{}] // nil: open
	waiting atomic.Int32                  // appends at the gate
}

// StoreLogs implements raft.LogStore.
func (g *GatedLog) StoreLogs(logs []*raft.Log) error {
	if gate := g.gate.Load(); gate != nil {
		g.waiting.Add(1)
		<-*gate
		g.waiting.Add(-1)
	}
	return g.LogStore.StoreLogs(logs)
}

// Waiting returns how many appends are at the gate.
func (g *GatedLog) Waiting() int { return int(g.waiting.Load()) }

// Hold closes the gate until open is called.
func (g *GatedLog) Hold() (open func()) {
	gate := make(chan struct{})
	g.gate.Store(&gate)
	return func() {
		g.gate.Store(nil)
		close(gate)
	}
}

// MemoryDir creates a folder in memory if there is such a file system: for tests that write
// much, and do not test the disk itself. It is removed when the test ends.
func MemoryDir(t testing.TB) string {
	t.Helper()
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "claimq-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
