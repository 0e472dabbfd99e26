// Package disktest provides faulty disks for tests.
package disktest

import (
	"sync/atomic"

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
