package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/trail"
	"github.com/claimq/claimq/fsm/wire"
)

// snapshotReader takes the records of a snapshot, in the one order that they have,
// checks each, and hands those of which there may be many to keep.
type snapshotReader struct {
	keep recordKeeper
	// m gets the header and the records of which there are few.
	m     *Machine
	want  record.Counts // as the header says
	got   record.Counts
	hash  stateHash
	names record.Names
	last  record.Kind // 0 before the header
	// lastTask, lastRequest and lastGone are the highest ids and sequence number
	// yet.
	lastTask, lastRequest, lastGone uint64
	trailEnd                        uint64 // where the last chunk of the trail ends
	ended                           bool

	read1 record.Task // the one that was read last
}

// recordKeeper is told of the records of a snapshot that are good by themselves.
type recordKeeper interface {
	// task is told of a task and its record, packed, both good until it returns.
	task(t *record.Task, packed []byte) error
	request(seq uint64, q *record.Request)
	gone(id uint64, g *record.Gone) error
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
func (s *snapshotReader) chunk(kind record.Kind, payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: it is empty", ErrCorrupt)
	}
	for n := 1; len(payload) > 0; n++ {
		size, skip := wire.Varint(payload)
		if skip == 0 || size > uint64(len(payload)-skip) {
			return fmt.Errorf("%w: record %d: bad size", ErrCorrupt, n)
		}
		packed := payload[skip : skip+int(size)]
		payload = payload[skip+int(size):]
		if err := s.record(kind, packed); err != nil {
			return fmt.Errorf("record %d (%v): %w", n, kind, err)
		}
	}
	return nil
}

// record takes one record. Nothing of it is kept without being copied.
func (s *snapshotReader) record(kind record.Kind, packed []byte) error {
	if s.ended || kind < s.last || (s.last == 0) != (kind == record.KindHeader) {
		return fmt.Errorf("%w: it is out of order, behind a %v", ErrCorrupt, s.last)
	}
	s.last = kind
	r := record.ReaderOf(packed)
	var err error
	switch kind {
	case record.KindHeader:
		err = s.header(&r)
	case record.KindTask:
		err = s.task(&r, packed)
	case record.KindRequest:
		err = s.request(&r)
	case record.KindNode:
		err = s.node(&r)
	case record.KindType:
		err = s.taskType(&r)
	case record.KindGone:
		err = s.gone(&r)
	case record.KindTrail:
		err = s.trail(&r)
	case record.KindSchedule:
		err = s.schedule(&r)
	case record.KindEnd:
		return s.end(&r)
	default:
		return fmt.Errorf("%w: it is unknown", ErrUnknownCommand)
	}
	s.hash.add(kind, packed)
	return err
}

func (s *snapshotReader) header(r *record.Reader) error {
	s.m.header, s.m.trail.Header, s.want = record.DecodeHeader(r)
	h := &s.m.header
	switch {
	case r.Err != nil:
		return r.Err
	case h.Level > record.FeatureLevel:
		return fmt.Errorf("%w: feature level %d, this one knows %d", ErrUnknownCommand, h.Level, record.FeatureLevel)
	case h.NextID == 0 || h.NextToken == 0 || h.NextRequest == 0:
		return fmt.Errorf("%w: a counter is missing", ErrCorrupt)
	}
	return nil
}

// task takes a task, whose record r reads.
func (s *snapshotReader) task(r *record.Reader, packed []byte) error {
	t := &s.read1
	*t = record.Task{}
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
	if problem := t.StepsProblem(h); problem != "" {
		return fmt.Errorf("%w: task %d: %s", ErrCorrupt, t.ID, problem)
	}
	s.lastTask = t.ID
	s.got.Tasks++
	return s.keep.task(t, packed)
}

// decodeSharedTask reads a task's record. Parameters and payload are parts of it.
func decodeSharedTask(r *record.Reader, t *record.Task, names *record.Names) {
	for r.Next() {
		switch r.Num {
		case 3:
			t.Params = r.Single()
		case 4:
			t.Payload = r.Single()
		default:
			record.DecodeTaskField(r, t, names)
		}
	}
}

func (s *snapshotReader) request(r *record.Reader) error {
	seq, q := record.DecodeRequest(r, &s.names)
	switch {
	case r.Err != nil:
		return r.Err
	case seq <= s.lastRequest || seq >= s.m.header.NextRequest:
		return fmt.Errorf("%w: number %d between %d and %d", ErrCorrupt, seq, s.lastRequest, s.m.header.NextRequest)
	}
	s.lastRequest = seq
	s.got.Requests++
	s.keep.request(seq, q)
	return nil
}

func (s *snapshotReader) node(r *record.Reader) error {
	n := record.DecodeNode(r)
	if r.Err != nil {
		return r.Err
	}
	if all := s.m.nodes; len(all) > 0 && n.UUID <= all[len(all)-1].UUID {
		return fmt.Errorf("%w: node %q behind %q", ErrCorrupt, n.UUID, all[len(all)-1].UUID)
	}
	s.m.nodes = append(s.m.nodes, n)
	s.got.Nodes++
	return nil
}

func (s *snapshotReader) taskType(r *record.Reader) error {
	t := record.DecodeType(r, &s.names)
	if r.Err != nil {
		return r.Err
	}
	all := s.m.settings
	switch {
	case t.Name == "":
		return fmt.Errorf("%w: a task type without a name", ErrCorrupt)
	case len(all) == record.TaskTypesMax:
		return fmt.Errorf("%w: settings of more than %d task types", ErrCorrupt, record.TaskTypesMax)
	case len(all) > 0 && t.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: task type %q behind %q", ErrCorrupt, t.Name, all[len(all)-1].Name)
	}
	s.m.settings = append(s.m.settings, t)
	s.got.Types++
	return nil
}

func (s *snapshotReader) gone(r *record.Reader) error {
	id, g := record.DecodeGone(r, &s.names)
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
	s.got.Gone++
	return s.keep.gone(id, g)
}

// trail takes a chunk of the trail. What is in it is looked at by rebuildRest.
func (s *snapshotReader) trail(r *record.Reader) error {
	c, err := trail.ReadChunk(&r.Reader)
	switch {
	case err != nil:
		return err
	case s.got.Trail > 0 && c.Start != s.trailEnd:
		return fmt.Errorf("%w: events at %d behind those up to %d", ErrCorrupt, c.Start, s.trailEnd)
	}
	s.trailEnd = c.End()
	s.got.Trail++
	s.keep.trail(c)
	return nil
}

func (s *snapshotReader) end(r *record.Reader) error {
	counts, hash := record.DecodeEnd(r)
	got := s.got
	switch {
	case r.Err != nil:
		return r.Err
	case got != s.want || got != counts:
		return fmt.Errorf("%w: %d tasks, %d claim requests, %d nodes, %d task types, %d removed tasks, %d parts of the trail and %d schedules differ from their counts",
			ErrCorrupt, got.Tasks, got.Requests, got.Nodes, got.Types, got.Gone, got.Trail, got.Schedules)
	case hash != s.hash.sum():
		return fmt.Errorf("%w: the state hash differs", ErrCorrupt)
	}
	s.ended = true
	return nil
}

func (s *snapshotReader) schedule(r *record.Reader) error {
	v := record.DecodeSchedule(r)
	if r.Err != nil {
		return r.Err
	}
	all := s.m.schedules
	switch {
	case v.Name == "":
		return fmt.Errorf("%w: a schedule without a name", ErrCorrupt)
	case len(all) == record.SchedulesMax:
		return fmt.Errorf("%w: more than %d schedules", ErrCorrupt, record.SchedulesMax)
	case len(all) > 0 && v.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: schedule %q behind %q", ErrCorrupt, v.Name, all[len(all)-1].Name)
	case v.LastTaskID >= s.m.header.NextID:
		return fmt.Errorf("%w: schedule %q: task %d was never given out", ErrCorrupt, v.Name, v.LastTaskID)
	case v.Paused && v.NextRunAt != 0:
		return fmt.Errorf("%w: schedule %q is paused and waits for %d", ErrCorrupt, v.Name, v.NextRunAt)
	}
	s.m.schedules = append(all, v)
	s.got.Schedules++
	return nil
}
