package snapshot

import (
	"fmt"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// snapshotReader takes the records of a snapshot in their fixed order, checks each, and
// hands them to build.
type snapshotReader struct {
	build  Builder
	header record.Header
	few    Few
	want   record.Counts // from the header
	got    record.Counts
	hash   StateHash
	names  record.Names
	last   record.Kind // 0 before the header
	// These are the highest ids and numbers so far.
	lastTask, lastRequest, lastGone, lastTurn, lastShare uint64
	trailEnd                                             uint64 // where the last trail chunk ends
	ended                                                bool

	memory record.Task // for the task being read
}

// Builder makes a state from the records of a snapshot. It gets them in order, each verified by
// itself, and checks how they relate to each other.
type Builder interface {
	// Header comes first, with the header of the trail.
	Header(h record.Header, of event.Header)
	// Task gets a task and its encoded record. Both are valid only during the call.
	Task(t *record.Task, packed []byte) error
	Request(seq uint64, q *record.Request)
	Gone(id uint64, g *record.Gone) error
	Trail(c *event.Chunk)
	Turn(number uint64, t *record.Turn)
	Share(number uint64, of *record.Share)
	// Finish gets the remaining records, after all others. Errors: record.ErrCorrupt, wrapped, if
	// records contradict each other.
	Finish(few Few) error
}

// Few has the records of the kinds with few records.
type Few struct {
	Nodes     []record.NodeRecord    // sorted by UUID
	Types     []*record.TaskType     // sorted by name
	Schedules []*record.ScheduleView // sorted by name
	Histories []*record.History      // each sound by itself
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
		return fmt.Errorf("%w: it is empty", record.ErrCorrupt)
	}
	for n := 1; len(payload) > 0; n++ {
		size, skip := record.Varint(payload)
		if skip == 0 || size > uint64(len(payload)-skip) {
			return fmt.Errorf("%w: record %d: bad size", record.ErrCorrupt, n)
		}
		packed := payload[skip : skip+int(size)]
		payload = payload[skip+int(size):]
		if err := s.record(kind, packed); err != nil {
			return fmt.Errorf("record %d (%v): %w", n, kind, err)
		}
	}
	return nil
}

// record takes one record. Whatever is kept of it is copied.
func (s *snapshotReader) record(kind record.Kind, packed []byte) error {
	if s.ended || kind < s.last || (s.last == 0) != (kind == record.KindHeader) {
		return fmt.Errorf("%w: it is out of order, behind a %v", record.ErrCorrupt, s.last)
	}
	s.last = kind
	r := record.From(packed, &s.names)
	var err error
	switch kind {
	case record.KindHeader:
		err = s.head(&r)
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
	case record.KindTurn:
		err = s.turn(&r)
	case record.KindShare:
		err = s.share(&r)
	case record.KindHistory:
		err = s.history(&r)
	case record.KindEnd:
		return s.end(&r)
	default:
		return fmt.Errorf("%w: it is unknown", record.ErrUnknown)
	}
	s.hash.Add(kind, packed)
	return err
}

func (s *snapshotReader) head(r *record.Fields) error {
	var of event.Header
	s.header, s.want = record.ReadHeader(r, &of)
	h := &s.header
	switch {
	case r.Err != nil:
		return r.Err
	case h.Level > record.FeatureLevel:
		return fmt.Errorf("%w: feature level %d, this one knows %d", record.ErrUnknown, h.Level, record.FeatureLevel)
	case h.NextID == 0 || h.NextToken == 0 || h.NextRequest == 0:
		return fmt.Errorf("%w: a counter is missing", record.ErrCorrupt)
	}
	s.build.Header(s.header, of)
	return nil
}

// task takes a task, which r reads.
func (s *snapshotReader) task(r *record.Fields, packed []byte) error {
	t := &s.memory
	*t = record.Task{}
	record.ReadTask(r, t)
	h := &s.header
	switch {
	case r.Err != nil:
		return r.Err
	case t.ID <= s.lastTask || t.ID >= h.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", record.ErrCorrupt, t.ID, s.lastTask, h.NextID)
	case t.Token >= h.NextToken:
		return fmt.Errorf("%w: task %d: token %d is not below %d", record.ErrCorrupt, t.ID, t.Token, h.NextToken)
	case t.Status == 0:
		return fmt.Errorf("%w: task %d has no status", record.ErrCorrupt, t.ID)
	}
	if problem := t.StepsProblem(h); problem != "" {
		return fmt.Errorf("%w: task %d: %s", record.ErrCorrupt, t.ID, problem)
	}
	s.lastTask = t.ID
	s.got.Tasks++
	return s.build.Task(t, packed)
}

func (s *snapshotReader) request(r *record.Fields) error {
	seq, q := record.ReadRequest(r)
	switch {
	case r.Err != nil:
		return r.Err
	case seq <= s.lastRequest || seq >= s.header.NextRequest:
		return fmt.Errorf("%w: number %d between %d and %d", record.ErrCorrupt, seq, s.lastRequest, s.header.NextRequest)
	}
	s.lastRequest = seq
	s.got.Requests++
	s.build.Request(seq, q)
	return nil
}

func (s *snapshotReader) node(r *record.Fields) error {
	n := record.ReadNode(r)
	if r.Err != nil {
		return r.Err
	}
	if all := s.few.Nodes; len(all) > 0 && n.UUID <= all[len(all)-1].UUID {
		return fmt.Errorf("%w: node %q behind %q", record.ErrCorrupt, n.UUID, all[len(all)-1].UUID)
	}
	s.few.Nodes = append(s.few.Nodes, n)
	s.got.Nodes++
	return nil
}

func (s *snapshotReader) taskType(r *record.Fields) error {
	t := record.ReadType(r)
	if r.Err != nil {
		return r.Err
	}
	all := s.few.Types
	switch {
	case t.Name == "":
		return fmt.Errorf("%w: a task type without a name", record.ErrCorrupt)
	case len(all) == record.TaskTypesMax:
		return fmt.Errorf("%w: settings of more than %d task types", record.ErrCorrupt, record.TaskTypesMax)
	case len(all) > 0 && t.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: task type %q behind %q", record.ErrCorrupt, t.Name, all[len(all)-1].Name)
	}
	s.few.Types = append(s.few.Types, t)
	s.got.Types++
	return nil
}

func (s *snapshotReader) gone(r *record.Fields) error {
	id, g := record.ReadGone(r)
	switch {
	case r.Err != nil:
		return r.Err
	case id <= s.lastGone || id >= s.header.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", record.ErrCorrupt, id, s.lastGone, s.header.NextID)
	case !g.Status.Ended():
		return fmt.Errorf("%w: removed task %d had not ended", record.ErrCorrupt, id)
	case g.Token >= s.header.NextToken:
		return fmt.Errorf("%w: removed task %d: token %d is not below %d", record.ErrCorrupt, id, g.Token, s.header.NextToken)
	}
	s.lastGone = id
	s.got.Gone++
	return s.build.Gone(id, g)
}

// trail takes a trail chunk. The builder checks its contents.
func (s *snapshotReader) trail(r *record.Fields) error {
	c, err := event.ReadChunk(r)
	switch {
	case err != nil:
		return err
	case s.got.Trail > 0 && c.Start != s.trailEnd:
		return fmt.Errorf("%w: events at %d behind those up to %d", record.ErrCorrupt, c.Start, s.trailEnd)
	}
	s.trailEnd = c.End()
	s.got.Trail++
	s.build.Trail(c)
	return nil
}

func (s *snapshotReader) turn(r *record.Fields) error {
	number, t := record.ReadTurn(r)
	switch {
	case r.Err != nil:
		return r.Err
	case number <= s.lastTurn:
		return fmt.Errorf("%w: turn %d behind %d", record.ErrCorrupt, number, s.lastTurn)
	}
	s.lastTurn = number
	s.got.Turns++
	s.build.Turn(number, t)
	return nil
}

func (s *snapshotReader) share(r *record.Fields) error {
	number, of := record.ReadShare(r)
	switch {
	case r.Err != nil:
		return r.Err
	case number <= s.lastShare:
		return fmt.Errorf("%w: share %d behind %d", record.ErrCorrupt, number, s.lastShare)
	case of.Type == "" || of.Key == "" || of.IsNothing() || of.Spent < 0:
		return fmt.Errorf("%w: share %d has no key, or nothing that is set", record.ErrCorrupt, number)
	}
	s.lastShare = number
	s.got.Shares++
	s.build.Share(number, of)
	return nil
}

func (s *snapshotReader) end(r *record.Fields) error {
	counts, hash := record.ReadEnd(r)
	got := s.got
	switch {
	case r.Err != nil:
		return r.Err
	case got != s.want || got != counts:
		return fmt.Errorf("%w: %d tasks, %d claim requests, %d nodes, %d task types, %d removed tasks, %d parts of the trail, %d schedules, %d turns, %d shares and %d histories differ from their counts",
			record.ErrCorrupt, got.Tasks, got.Requests, got.Nodes, got.Types, got.Gone, got.Trail, got.Schedules, got.Turns, got.Shares, got.Histories)
	case hash != s.hash.Sum():
		return fmt.Errorf("%w: the state hash differs", record.ErrCorrupt)
	}
	s.ended = true
	return nil
}

func (s *snapshotReader) schedule(r *record.Fields) error {
	v := record.ReadSchedule(r)
	if r.Err != nil {
		return r.Err
	}
	all := s.few.Schedules
	switch {
	case v.Name == "":
		return fmt.Errorf("%w: a schedule without a name", record.ErrCorrupt)
	case len(all) == record.SchedulesMax:
		return fmt.Errorf("%w: more than %d schedules", record.ErrCorrupt, record.SchedulesMax)
	case len(all) > 0 && v.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: schedule %q behind %q", record.ErrCorrupt, v.Name, all[len(all)-1].Name)
	case v.LastTaskID >= s.header.NextID:
		return fmt.Errorf("%w: schedule %q: task %d was never given out", record.ErrCorrupt, v.Name, v.LastTaskID)
	case v.Paused && v.NextRunAt != 0:
		return fmt.Errorf("%w: schedule %q is paused and waits for %d", record.ErrCorrupt, v.Name, v.NextRunAt)
	}
	s.few.Schedules = append(all, v)
	s.got.Schedules++
	return nil
}

func (s *snapshotReader) history(r *record.Fields) error {
	h := record.ReadHistory(r)
	if r.Err != nil {
		return r.Err
	}
	all := s.few.Histories
	switch {
	case len(all) == record.HistoriesMax:
		return fmt.Errorf("%w: more than %d histories", record.ErrCorrupt, record.HistoriesMax)
	case (h.Type == "") != (len(all) == 0):
		return fmt.Errorf("%w: that of all tasks is the first, and no other", record.ErrCorrupt)
	case len(all) > 0 && h.Open.At != all[0].Open.At:
		return fmt.Errorf("%w: history of %q: minute %d is under way, in others %d", record.ErrCorrupt, h.Type, h.Open.At, all[0].Open.At)
	}
	if problem := h.Problem(); problem != "" {
		return fmt.Errorf("%w: history of %q: %s", record.ErrCorrupt, h.Type, problem)
	}
	s.few.Histories = append(all, h)
	s.got.Histories++
	return nil
}
