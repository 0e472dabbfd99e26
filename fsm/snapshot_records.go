package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/trail"
	"github.com/claimq/claimq/fsm/wire"
)

// snapshotReader takes the records of a snapshot, in the one order that they have,
// checks each, and hands those of which there may be many to keep.
type snapshotReader struct {
	keep recordKeeper
	// m gets the header and the records of which there are few.
	m     *Machine
	want  recordCounts // as the header says
	got   recordCounts
	hash  stateHash
	names interner
	last  recordKind // 0 before the header
	// lastTask, lastRequest and lastGone are the highest ids and sequence number
	// yet.
	lastTask, lastRequest, lastGone uint64
	trailEnd                        uint64 // where the last chunk of the trail ends
	ended                           bool

	read1 Task // the one that was read last
}

// recordKeeper is told of the records of a snapshot that are good by themselves.
type recordKeeper interface {
	// task is told of a task and its record, both good until it returns.
	task(t *Task, record []byte) error
	request(seq uint64, q *request)
	gone(id uint64, g *gone) error
	trail(c *trail.Chunk)
}

// read takes all chunks.
func (s *snapshotReader) read(in *chunkReader) error {
	if err := in.magic(); err != nil {
		return err
	}
	for !s.ended {
		kind, payload, err := in.next()
		if err != nil {
			return err
		}
		if err := s.chunk(kind, payload); err != nil {
			return err
		}
	}
	return in.end()
}

// chunk takes the records of a chunk.
func (s *snapshotReader) chunk(kind recordKind, payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: it is empty", ErrCorrupt)
	}
	for n := 1; len(payload) > 0; n++ {
		size, skip := wire.Varint(payload)
		if skip == 0 || size > uint64(len(payload)-skip) {
			return fmt.Errorf("%w: record %d: bad size", ErrCorrupt, n)
		}
		record := payload[skip : skip+int(size)]
		payload = payload[skip+int(size):]
		if err := s.record(kind, record); err != nil {
			return fmt.Errorf("record %d (%v): %w", n, kind, err)
		}
	}
	return nil
}

// record takes one record. Nothing of it is kept without being copied.
func (s *snapshotReader) record(kind recordKind, record []byte) error {
	if s.ended || kind < s.last || (s.last == 0) != (kind == recordHeader) {
		return fmt.Errorf("%w: it is out of order, behind a %v", ErrCorrupt, s.last)
	}
	s.last = kind
	r := fieldsOf(record)
	var err error
	switch kind {
	case recordHeader:
		err = s.header(&r)
	case recordTask:
		err = s.task(&r, record)
	case recordRequest:
		err = s.request(&r)
	case recordNode:
		err = s.node(&r)
	case recordType:
		err = s.taskType(&r)
	case recordGone:
		err = s.gone(&r)
	case recordTrail:
		err = s.trail(&r)
	case recordSchedule:
		err = s.schedule(&r)
	case recordEnd:
		return s.end(&r)
	default:
		return fmt.Errorf("%w: it is unknown", ErrUnknownCommand)
	}
	s.hash.add(kind, record)
	return err
}

func (s *snapshotReader) header(r *fieldReader) error {
	s.m.header, s.m.trail.Header, s.want = decodeHeaderRecord(r)
	h := &s.m.header
	switch {
	case r.Err != nil:
		return r.Err
	case h.Level > FeatureLevel:
		return fmt.Errorf("%w: feature level %d, this one knows %d", ErrUnknownCommand, h.Level, FeatureLevel)
	case h.NextID == 0 || h.NextToken == 0 || h.NextRequest == 0:
		return fmt.Errorf("%w: a counter is missing", ErrCorrupt)
	}
	return nil
}

// task takes a task, whose record is read by r.
func (s *snapshotReader) task(r *fieldReader, record []byte) error {
	t := &s.read1
	*t = Task{}
	decodeSharedTask(r, t, &s.names)
	h := &s.m.header
	switch {
	case r.Err != nil:
		return r.Err
	case t.ID <= s.lastTask || t.ID >= h.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", ErrCorrupt, t.ID, s.lastTask, h.NextID)
	case t.Token >= h.NextToken:
		return fmt.Errorf("%w: task %d: token %d is not below %d", ErrCorrupt, t.ID, t.Token, h.NextToken)
	case t.Status == 0:
		return fmt.Errorf("%w: task %d has no status", ErrCorrupt, t.ID)
	}
	if problem := t.stepsProblem(h); problem != "" {
		return fmt.Errorf("%w: task %d: %s", ErrCorrupt, t.ID, problem)
	}
	s.lastTask = t.ID
	s.got.tasks++
	return s.keep.task(t, record)
}

// decodeSharedTask reads a task's record. Parameters and payload are parts of it.
func decodeSharedTask(r *fieldReader, t *Task, names *interner) {
	for r.Next() {
		switch r.Num {
		case 3:
			t.Params = r.Single()
		case 4:
			t.Payload = r.Single()
		default:
			decodeTaskField(r, t, names)
		}
	}
}

func (s *snapshotReader) request(r *fieldReader) error {
	seq, q := decodeRequestRecord(r, &s.names)
	switch {
	case r.Err != nil:
		return r.Err
	case seq <= s.lastRequest || seq >= s.m.header.NextRequest:
		return fmt.Errorf("%w: number %d between %d and %d", ErrCorrupt, seq, s.lastRequest, s.m.header.NextRequest)
	}
	s.lastRequest = seq
	s.got.requests++
	s.keep.request(seq, q)
	return nil
}

func (s *snapshotReader) node(r *fieldReader) error {
	n := decodeNodeRecord(r)
	if r.Err != nil {
		return r.Err
	}
	if all := s.m.nodes; len(all) > 0 && n.UUID <= all[len(all)-1].UUID {
		return fmt.Errorf("%w: node %q behind %q", ErrCorrupt, n.UUID, all[len(all)-1].UUID)
	}
	s.m.nodes = append(s.m.nodes, n)
	s.got.nodes++
	return nil
}

func (s *snapshotReader) taskType(r *fieldReader) error {
	t := decodeTypeRecord(r, &s.names)
	if r.Err != nil {
		return r.Err
	}
	all := s.m.settings
	switch {
	case t.Name == "":
		return fmt.Errorf("%w: a task type without a name", ErrCorrupt)
	case len(all) == typeRecordsMax:
		return fmt.Errorf("%w: settings of more than %d task types", ErrCorrupt, typeRecordsMax)
	case len(all) > 0 && t.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: task type %q behind %q", ErrCorrupt, t.Name, all[len(all)-1].Name)
	}
	s.m.settings = append(s.m.settings, t)
	s.got.types++
	return nil
}

func (s *snapshotReader) gone(r *fieldReader) error {
	id, g := decodeGoneRecord(r, &s.names)
	switch {
	case r.Err != nil:
		return r.Err
	case id <= s.lastGone || id >= s.m.header.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", ErrCorrupt, id, s.lastGone, s.m.header.NextID)
	case !g.Status.Ended():
		return fmt.Errorf("%w: removed task %d had not ended", ErrCorrupt, id)
	case g.Token >= s.m.header.NextToken:
		return fmt.Errorf("%w: removed task %d: token %d is not below %d", ErrCorrupt, id, g.Token, s.m.header.NextToken)
	}
	s.lastGone = id
	s.got.gone++
	return s.keep.gone(id, g)
}

// trail takes a chunk of the trail. What is in it is looked at by rebuildRest.
func (s *snapshotReader) trail(r *fieldReader) error {
	c, err := trail.ReadChunk(&r.Reader)
	switch {
	case err != nil:
		return err
	case s.got.trail > 0 && c.Start != s.trailEnd:
		return fmt.Errorf("%w: events at %d behind those up to %d", ErrCorrupt, c.Start, s.trailEnd)
	}
	s.trailEnd = c.End()
	s.got.trail++
	s.keep.trail(c)
	return nil
}

func (s *snapshotReader) end(r *fieldReader) error {
	counts, hash := decodeEndRecord(r)
	got := s.got
	switch {
	case r.Err != nil:
		return r.Err
	case got != s.want || got != counts:
		return fmt.Errorf("%w: %d tasks, %d claim requests, %d nodes, %d task types, %d removed tasks, %d parts of the trail and %d schedules differ from their counts",
			ErrCorrupt, got.tasks, got.requests, got.nodes, got.types, got.gone, got.trail, got.schedules)
	case hash != s.hash.sum():
		return fmt.Errorf("%w: the state hash differs", ErrCorrupt)
	}
	s.ended = true
	return nil
}
