//go:build plant

package cluster

import "github.com/claimq/claimq/fsm"

// plantDropWrite is true: one submit in plantDropEvery is acknowledged and
// dropped. For showing that a checker notices, and for nothing else.
const plantDropWrite = true

const plantDropEvery = 997

// dropWrite reports whether this submit is to be dropped, and the lie to tell.
func (n *Node) dropWrite(c fsm.Submit) (fsm.Proposed, bool) {
	count := n.planted.Add(1)
	if count%plantDropEvery != 0 || !n.IsLeader() {
		return fsm.Proposed{}, false
	}
	var p fsm.Proposed
	var next uint64
	p.Index = n.fsm.read(func(m *fsm.Machine) { p.Stamp = m.Stamp() })
	next = 1<<52 + count*10_000
	for i, t := range c.Tasks {
		p.Result.Submitted = append(p.Result.Submitted, fsm.Submitted{Created: true, Task: &fsm.Task{
			ID: next + uint64(i), Type: t.Type, Params: t.Params, Payload: t.Payload, Priority: t.Priority,
			MaxAttempts: max(t.MaxAttempts, 0), Key: t.Key, LeaseMS: t.LeaseMS, Status: fsm.StatusPending,
			CreatedAt: p.Stamp.T, UpdatedAt: p.Stamp.T,
		}})
	}
	return p, true
}
