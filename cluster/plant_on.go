//go:build plant

package cluster

import (
	"sync/atomic"

	"github.com/claimq/claimq/fsm"
)

// plantDropWrite is true: one submit in plantDropEvery is acknowledged and
// dropped. For showing that a checker notices, and for nothing else.
const plantDropWrite = true

const plantDropEvery = 997

// plantSubmits counts the submits of the process: a variable of the package, so
// that nothing of the plant is in a Node of the real builds.
var plantSubmits atomic.Uint64

// dropWrite reports whether this submit is to be dropped, and the lie to tell.
func (n *Node) dropWrite(c fsm.Submit) (fsm.Proposed, bool) {
	if !n.IsLeader() {
		return fsm.Proposed{}, false
	}
	count := plantSubmits.Add(1)
	if count%plantDropEvery != 0 {
		return fsm.Proposed{}, false
	}
	var p fsm.Proposed
	p.Index = n.fsm.read(func(m *fsm.Machine) { p.Stamp = m.Stamp() })
	next := uint64(1<<52) + count*10_000
	for i, t := range c.Tasks {
		p.Result.Submitted = append(p.Result.Submitted, fsm.Submitted{Created: true, Task: &fsm.Task{
			ID: next + uint64(i), Type: t.Type, Params: t.Params, Payload: t.Payload, Priority: t.Priority,
			MaxAttempts: max(t.MaxAttempts, 0), Key: t.Key, LeaseMS: t.LeaseMS, Status: fsm.StatusPending,
			CreatedAt: p.Stamp.T, UpdatedAt: p.Stamp.T,
		}})
	}
	return p, true
}
