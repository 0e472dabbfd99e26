package fsm

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// stateBuilder fills a machine with the records of a snapshot and indexes most tasks on the
// way.
type stateBuilder struct {
	m     *Machine
	steps []uint64 // parents and steps, which are indexed after all tasks
}

// Header sets the header.
func (b *stateBuilder) Header(h record.Header, of event.Header) {
	b.m.header, b.m.trail.Header = h, of
}

// Task adds a task. Waiting and ended tasks are kept packed, as the record is, so that only
// their index entries are allocated.
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
func (b *stateBuilder) Request(seq uint64, q *record.Request) { b.m.requests.table.Put(seq, q) }

// Gone adds a removed task.
func (b *stateBuilder) Gone(id uint64, g *record.Gone) error {
	if b.m.tasks.Get(id) != nil {
		return fmt.Errorf("%w: removed task %d is there", ErrCorrupt, id)
	}
	b.m.gone.table.Put(id, g)
	return nil
}

// Trail adds a chunk of the trail.
func (b *stateBuilder) Trail(c *event.Chunk) { b.m.trail.Load(c) }

// Turn adds a turn.
func (b *stateBuilder) Turn(number uint64, t *record.Turn) { b.m.turns.table.Put(number, t) }

// Share adds a saved share.
func (b *stateBuilder) Share(number uint64, of *record.Share) { b.m.shares.table.Put(number, of) }

// Finish indexes everything that is not indexed yet.
func (b *stateBuilder) Finish(few snapshot.Few) error {
	b.m.nodes, b.m.types.settings, b.m.schedules.all = few.Nodes, few.Types, few.Schedules
	if twice := b.m.histories.load(few.Histories); twice != nil {
		return fmt.Errorf("%w: a second history of type %q", ErrCorrupt, twice.Type)
	}
	b.m.tasks.Loaded()
	for _, id := range b.steps {
		if problem := b.m.indexTask(id, b.m.tasks.Get(id)); problem != "" {
			return contradiction(record.KindTask, id, problem)
		}
	}
	return b.m.rebuildRest()
}

// Snapshot captures the state within microseconds. Records are copied only when they change
// while the snapshot lives. The caller must release it.
func (m *Machine) Snapshot() *snapshot.Snapshot {
	return snapshot.Of(snapshot.Parts{
		Header:    m.header,
		Tasks:     m.tasks.View(),
		Requests:  m.requests.table.View(),
		Nodes:     m.nodes,
		Types:     record.CloneTypes(m.types.settings),
		Gone:      m.gone.table.View(),
		Trail:     m.trail.View(),
		Schedules: m.schedules.all,
		Turns:     m.turns.table.View(),
		Shares:    m.shares.table.View(),
		Histories: m.histories.view(),
	})
}

// ReadSnapshot builds the state from a snapshot. It reads r to its end and verifies all
// checksums, counts, orders and the state hash before it returns a machine. In addition to
// the machine it holds one chunk in memory.
//
// Errors, wrapped with the place: ErrCorrupt if the bytes are not as WriteTo wrote them,
// even if only cut off; ErrUnknownCommand if a newer version wrote them; ErrDevelopment;
// errors of r.
func ReadSnapshot(r io.Reader) (*Machine, error) {
	b := &stateBuilder{m: New()}
	if err := snapshot.Read(r, b); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return b.m, nil
}

// VerifySnapshot verifies a snapshot as ReadSnapshot does, except for relations between
// records, such as duplicate keys and tokens, parents of steps, and links between events.
// It returns an estimate of the state's memory, as Machine.Bytes does. It holds one chunk
// in memory instead of the state. Errors: those of ReadSnapshot.
func VerifySnapshot(r io.Reader) (bytes int64, err error) {
	if bytes, err = snapshot.Weigh(r); err != nil {
		return 0, fmt.Errorf("verify snapshot: %w", err)
	}
	return bytes, nil
}
