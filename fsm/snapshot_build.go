package fsm

import (
	"bytes"
	"fmt"
	"math"
)

// snapshotBuilder fills a machine with the records of a snapshot, in the one
// order that they have, and with what is derived of the tasks as they come.
type snapshotBuilder struct {
	m *Machine
	// dry says that the records are looked at only: the machine gets those of which
	// there are few.
	dry   bool
	want  recordCounts // as the header says
	got   recordCounts
	hash  stateHash
	names interner
	last  recordKind // 0 before the header
	// lastTask, lastRequest and lastGone are the highest ids and sequence number
	// yet.
	lastTask, lastRequest, lastGone uint64
	ended                           bool

	read1 Task     // the one that was read last
	steps []uint64 // parents and steps: they are indexed when all tasks are there

	held     int64  // what tasks, requests and schedules take, if dry
	pages    uint64 // pages with tasks, if dry
	trailEnd uint64 // where the last chunk of the trail ends
}

// read takes all chunks.
func (b *snapshotBuilder) read(in *chunkReader) error {
	if err := in.magic(); err != nil {
		return err
	}
	for !b.ended {
		kind, payload, err := in.next()
		if err != nil {
			return err
		}
		if err := b.chunk(kind, payload); err != nil {
			return err
		}
	}
	return in.end()
}

// finish builds what is derived of all records but those of most tasks, which is
// there.
func (b *snapshotBuilder) finish() error {
	b.m.tasks.loaded()
	for _, id := range b.steps {
		if problem := b.m.indexTask(id, b.m.tasks.get(id)); problem != "" {
			return contradiction(recordTask, id, problem)
		}
	}
	return b.m.rebuildRest()
}

// bytes estimates the memory that the state takes, once all was read.
func (b *snapshotBuilder) bytes() int64 {
	n := b.held + int64(b.pages*pageSize-b.got.tasks)*placeBytes
	n += int64(b.got.trail) * trailChunkBytes
	if b.got.trail > 0 {
		n += int64(b.pages) * lastPageBytes
	}
	return n
}

// chunk takes the records of a chunk.
func (b *snapshotBuilder) chunk(kind recordKind, payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: it is empty", ErrCorrupt)
	}
	for n := 1; len(payload) > 0; n++ {
		size, skip := consumeVarint(payload)
		if skip == 0 || size > uint64(len(payload)-skip) {
			return fmt.Errorf("%w: record %d: bad size", ErrCorrupt, n)
		}
		record := payload[skip : skip+int(size)]
		payload = payload[skip+int(size):]
		if err := b.record(kind, record); err != nil {
			return fmt.Errorf("record %d (%v): %w", n, kind, err)
		}
	}
	return nil
}

// record takes one record. Nothing of it is kept without being copied.
func (b *snapshotBuilder) record(kind recordKind, record []byte) error {
	if b.ended || kind < b.last || (b.last == 0) != (kind == recordHeader) {
		return fmt.Errorf("%w: it is out of order, behind a %v", ErrCorrupt, b.last)
	}
	b.last = kind
	r := fieldReader{rest: record}
	var err error
	switch kind {
	case recordHeader:
		err = b.header(&r)
	case recordTask:
		err = b.task(&r, record)
	case recordRequest:
		err = b.request(&r)
	case recordNode:
		err = b.node(&r)
	case recordType:
		err = b.taskType(&r)
	case recordGone:
		err = b.gone(&r)
	case recordTrail:
		err = b.trail(&r)
	case recordSchedule:
		err = b.schedule(&r)
	case recordEnd:
		return b.end(&r)
	default:
		return fmt.Errorf("%w: it is unknown", ErrUnknownCommand)
	}
	b.hash.add(kind, record)
	return err
}

func (b *snapshotBuilder) header(r *fieldReader) error {
	b.m.header, b.want = decodeHeaderRecord(r)
	h := &b.m.header
	switch {
	case r.err != nil:
		return r.err
	case h.Level > FeatureLevel:
		return fmt.Errorf("%w: feature level %d, this one knows %d", ErrUnknownCommand, h.Level, FeatureLevel)
	case h.NextID == 0 || h.NextToken == 0 || h.NextRequest == 0:
		return fmt.Errorf("%w: a counter is missing", ErrCorrupt)
	}
	return nil
}

// task takes a task, whose record is read by r. Most tasks of a long queue wait,
// and the machine keeps the record of such a one as it is: so nothing is made of it
// that outlives this call but its places in the indexes.
func (b *snapshotBuilder) task(r *fieldReader, record []byte) error {
	t := &b.read1
	*t = Task{}
	decodeSharedTask(r, t, &b.names)
	h := &b.m.header
	switch {
	case r.err != nil:
		return r.err
	case t.ID <= b.lastTask || t.ID >= h.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", ErrCorrupt, t.ID, b.lastTask, h.NextID)
	case t.Token >= h.NextToken:
		return fmt.Errorf("%w: task %d: token %d is not below %d", ErrCorrupt, t.ID, t.Token, h.NextToken)
	case t.Status == 0:
		return fmt.Errorf("%w: task %d has no status", ErrCorrupt, t.ID)
	}
	if problem := t.stepsProblem(h); problem != "" {
		return fmt.Errorf("%w: task %d: %s", ErrCorrupt, t.ID, problem)
	}
	if b.dry {
		b.weigh(t)
	}
	b.lastTask = t.ID
	b.got.tasks++
	if b.dry {
		return nil
	}
	if isResting(t) && len(record) <= math.MaxUint16 {
		b.m.tasks.load(t.ID, nil, record)
	} else {
		own := *t
		own.Params, own.Payload = bytes.Clone(t.Params), bytes.Clone(t.Payload)
		t = &own
		b.m.tasks.load(t.ID, t, nil)
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

// decodeSharedTask reads a task's record. Parameters and payload are parts of it.
func decodeSharedTask(r *fieldReader, t *Task, names *interner) {
	for r.next() {
		switch r.num {
		case 3:
			t.Params = r.single()
		case 4:
			t.Payload = r.single()
		default:
			decodeTaskField(r, t, names)
		}
	}
}

// weigh adds up what the next task takes in memory.
func (b *snapshotBuilder) weigh(t *Task) {
	b.held += heldBytes(t, bytesOf(t))
	if group := groupOf(t); group != "" {
		b.held += bytesOfGroup(group) // as if it were alone there
	}
	if b.got.tasks == 0 || t.ID>>pageBits != b.lastTask>>pageBits {
		b.pages++
	}
}

func (b *snapshotBuilder) request(r *fieldReader) error {
	seq, q := decodeRequestRecord(r, &b.names)
	switch {
	case r.err != nil:
		return r.err
	case seq <= b.lastRequest || seq >= b.m.header.NextRequest:
		return fmt.Errorf("%w: number %d between %d and %d", ErrCorrupt, seq, b.lastRequest, b.m.header.NextRequest)
	}
	b.lastRequest = seq
	b.got.requests++
	if b.dry {
		b.held += bytesOfRequest(q)
		return nil
	}
	b.m.requests.put(seq, q)
	return nil
}

func (b *snapshotBuilder) node(r *fieldReader) error {
	n := decodeNodeRecord(r)
	if r.err != nil {
		return r.err
	}
	if all := b.m.nodes; len(all) > 0 && n.UUID <= all[len(all)-1].UUID {
		return fmt.Errorf("%w: node %q behind %q", ErrCorrupt, n.UUID, all[len(all)-1].UUID)
	}
	b.m.nodes = append(b.m.nodes, n)
	b.got.nodes++
	return nil
}

func (b *snapshotBuilder) taskType(r *fieldReader) error {
	t := decodeTypeRecord(r, &b.names)
	if r.err != nil {
		return r.err
	}
	all := b.m.settings
	switch {
	case t.Name == "":
		return fmt.Errorf("%w: a task type without a name", ErrCorrupt)
	case len(all) == typeRecordsMax:
		return fmt.Errorf("%w: settings of more than %d task types", ErrCorrupt, typeRecordsMax)
	case len(all) > 0 && t.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: task type %q behind %q", ErrCorrupt, t.Name, all[len(all)-1].Name)
	}
	b.m.settings = append(b.m.settings, t)
	b.got.types++
	return nil
}

func (b *snapshotBuilder) gone(r *fieldReader) error {
	id, g := decodeGoneRecord(r, &b.names)
	switch {
	case r.err != nil:
		return r.err
	case id <= b.lastGone || id >= b.m.header.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", ErrCorrupt, id, b.lastGone, b.m.header.NextID)
	case !g.Status.Ended():
		return fmt.Errorf("%w: removed task %d had not ended", ErrCorrupt, id)
	case g.Token >= b.m.header.NextToken:
		return fmt.Errorf("%w: removed task %d: token %d is not below %d", ErrCorrupt, id, g.Token, b.m.header.NextToken)
	case b.m.tasks.get(id) != nil:
		return fmt.Errorf("%w: removed task %d is there", ErrCorrupt, id)
	}
	b.lastGone = id
	b.got.gone++
	if b.dry {
		b.held += bytesOfGone(g)
		return nil
	}
	b.m.gone.put(id, g)
	return nil
}

func (b *snapshotBuilder) end(r *fieldReader) error {
	counts, hash := decodeEndRecord(r)
	got := b.got
	switch {
	case r.err != nil:
		return r.err
	case got != b.want || got != counts:
		return fmt.Errorf("%w: %d tasks, %d claim requests, %d nodes, %d task types, %d removed tasks, %d parts of the trail and %d schedules differ from their counts",
			ErrCorrupt, got.tasks, got.requests, got.nodes, got.types, got.gone, got.trail, got.schedules)
	case hash != b.hash.sum():
		return fmt.Errorf("%w: the state hash differs", ErrCorrupt)
	}
	b.ended = true
	return nil
}
