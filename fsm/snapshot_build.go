package fsm

import (
	"bytes"
	"fmt"
	"math"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/trail"
)

// stateBuilder fills a machine with the records of a snapshot, and with what is
// derived of the tasks as they come.
type stateBuilder struct {
	m     *Machine
	steps []uint64 // parents and steps: they are indexed when all tasks are there
}

// task adds a task. Most tasks of a long queue wait, and the machine keeps the
// record of such a one as it is: so nothing is made of it that outlives this call
// but its places in the indexes.
func (b *stateBuilder) task(t *record.Task, packed []byte) error {
	if record.IsResting(t) && len(packed) <= math.MaxUint16 {
		b.m.tasks.Load(t.ID, nil, packed)
	} else {
		own := *t
		own.Params, own.Payload = bytes.Clone(t.Params), bytes.Clone(t.Payload)
		t = &own
		b.m.tasks.Load(t.ID, t, nil)
	}
	if t.Parent() != nil || t.Step() != nil {
		b.steps = append(b.steps, t.ID)
		return nil
	}
	if problem := b.m.indexTask(t.ID, t); problem != "" {
		return fmt.Errorf("%w: task %d: %s", ErrCorrupt, t.ID, problem)
	}
	return nil
}

func (b *stateBuilder) request(seq uint64, q *record.Request) { b.m.requests.Put(seq, q) }

func (b *stateBuilder) gone(id uint64, g *record.Gone) error {
	if b.m.tasks.Get(id) != nil {
		return fmt.Errorf("%w: removed task %d is there", ErrCorrupt, id)
	}
	b.m.gone.Put(id, g)
	return nil
}

func (b *stateBuilder) trail(c *trail.Chunk) { b.m.trail.Load(c) }

// finish builds what is derived of all records but those of most tasks, which is
// there.
func (b *stateBuilder) finish() error {
	b.m.tasks.Loaded()
	for _, id := range b.steps {
		if problem := b.m.indexTask(id, b.m.tasks.Get(id)); problem != "" {
			return contradiction(record.KindTask, id, problem)
		}
	}
	return b.m.rebuildRest()
}
