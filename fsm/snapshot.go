package fsm

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
	"github.com/claimq/claimq/fsm/trail"
)

// stateBuilder fills a machine with the records of a snapshot, and with what is
// derived of the tasks as they come.
type stateBuilder struct {
	m     *Machine
	steps []uint64 // parents and steps: they are indexed when all tasks are there
}

// Header sets the header.
func (b *stateBuilder) Header(h record.Header, of trail.Header) {
	b.m.header, b.m.trail.Header = h, of
}

// Task adds a task. Most tasks of a long queue wait, and the machine keeps the
// record of such a one as it is: so nothing is made of it that outlives this call
// but its places in the indexes.
func (b *stateBuilder) Task(t *record.Task, packed []byte) error {
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

// Request adds a claim request.
func (b *stateBuilder) Request(seq uint64, q *record.Request) { b.m.requests.Put(seq, q) }

// Gone adds a removed task.
func (b *stateBuilder) Gone(id uint64, g *record.Gone) error {
	if b.m.tasks.Get(id) != nil {
		return fmt.Errorf("%w: removed task %d is there", ErrCorrupt, id)
	}
	b.m.gone.Put(id, g)
	return nil
}

// Trail adds a chunk of the trail.
func (b *stateBuilder) Trail(c *trail.Chunk) { b.m.trail.Load(c) }

// Finish builds what is derived of all records but those of most tasks, which is
// there.
func (b *stateBuilder) Finish(few snapshot.Few) error {
	b.m.nodes, b.m.settings, b.m.schedules = few.Nodes, few.Types, few.Schedules
	b.m.tasks.Loaded()
	for _, id := range b.steps {
		if problem := b.m.indexTask(id, b.m.tasks.Get(id)); problem != "" {
			return contradiction(record.KindTask, id, problem)
		}
	}
	return b.m.rebuildRest()
}

// Snapshot captures the state as it is, in microseconds: records are copied
// only when they change while the snapshot lives. The caller releases it.
func (m *Machine) Snapshot() *snapshot.Snapshot {
	return snapshot.Of(snapshot.Parts{
		Header:    m.header,
		Tasks:     m.tasks.View(),
		Requests:  m.requests.View(),
		Nodes:     m.nodes,
		Types:     record.CloneTypes(m.settings),
		Gone:      m.gone.View(),
		Trail:     m.trail.View(),
		Schedules: m.schedules,
	})
}

// ReadSnapshot builds the state that a snapshot holds. It reads r to its end
// and verifies every checksum, count and order and the state hash before there
// is a machine; beside the machine it holds one chunk in memory.
//
// Errors, wrapped with where: ErrCorrupt when the bytes are not what WriteTo
// wrote, a snapshot that is cut off included; ErrUnknownCommand when a newer
// version wrote it; r's own.
func ReadSnapshot(r io.Reader) (*Machine, error) {
	b := &stateBuilder{m: New()}
	if err := snapshot.Read(r, b); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return b.m, nil
}

// VerifySnapshot verifies a snapshot as ReadSnapshot does, but for what records
// say of each other: whether a key or a token is given twice, a step has its
// parent, an event leads to the one before. It returns about how many bytes of
// memory the state takes, as Machine.Bytes estimates them. It holds one chunk in
// memory, not the state. Errors: ReadSnapshot's.
func VerifySnapshot(r io.Reader) (bytes int64, err error) {
	if bytes, err = snapshot.Weigh(r); err != nil {
		return 0, fmt.Errorf("verify snapshot: %w", err)
	}
	return bytes, nil
}
