package fsm

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
	"github.com/claimq/claimq/fsm/wire"
)

// partial is a restore that is under way: the new state, as far as its snapshot has
// come. It grows with the chunks; beside the records it holds one chunk of the
// snapshot, which may be cut anywhere.
type partial struct {
	begin uint64 // index of the entry that began it
	bytes uint64 // of the snapshot
	taken uint64 // how many of them have come
	feed  *snapshot.Feed
	build *stateBuilder
}

// Restoring is how far a restore is that is under way.
type Restoring struct {
	Begin uint64 // index of the entry that began it
	Taken uint64 // bytes of the snapshot that have come
	Bytes uint64 // of all of it
}

// Restoring returns how far the restore is that is under way, ok false if none is.
// Until it has ended the state is the empty one that it had before.
func (m *Machine) Restoring() (r Restoring, ok bool) {
	if m.partial == nil {
		return r, false
	}
	return Restoring{Begin: m.partial.begin, Taken: m.partial.taken, Bytes: m.partial.bytes}, true
}

func (m *Machine) beginRestore(c command.RestoreBegin) Result {
	m.partial = nil
	if m.Contents() != "" {
		return Result{Code: CodeNotEmpty}
	}
	build := &stateBuilder{m: New()}
	m.partial = &partial{begin: m.header.Index, bytes: c.Bytes, feed: snapshot.NewFeed(build), build: build}
	return Result{}
}

func (m *Machine) takeChunk(c command.RestoreChunk) Result {
	p := m.partial
	if p == nil || p.begin != c.Begin || p.taken != c.Offset || !p.take(c.Data) {
		m.partial = nil
		return Result{Code: CodeInvalidRequest}
	}
	return Result{}
}

// take reads the next bytes of the snapshot. It reports whether they are part of one.
func (p *partial) take(data []byte) bool {
	p.taken += uint64(len(data))
	return p.feed.Take(data) == nil
}

// finish returns the new state, nil if the snapshot is not whole or its records
// contradict each other.
func (p *partial) finish() *Machine {
	if p.taken != p.bytes || p.feed.Finish() != nil {
		return nil
	}
	return p.build.m
}

func (m *Machine) endRestore(c command.RestoreEnd) Result {
	p := m.partial
	m.partial = nil
	if p == nil || p.begin != c.Begin {
		return Result{Code: CodeInvalidRequest}
	}
	state := p.finish()
	if state == nil || !state.header.Follows(&m.header) {
		return Result{Code: CodeInvalidRequest}
	}
	m.become(state)
	m.restored = true
	return Result{}
}

// become makes the machine the state, which nobody uses after it. What belongs to
// the cluster and to its log stays: nodes and join tokens, the index, the chain, and that moments
// grow beyond those of both. So does what its trail tells of operators' acts, behind what the
// backup's does. There is no page's secret behind it: a user who has logged in must do so again.
func (m *Machine) become(state *Machine) {
	h := &state.header
	last := max(h.Moment()+1, m.moment())
	h.Index, h.Chain = m.header.Index, m.header.Chain
	h.Ahead = last - h.Index
	state.nodes, h.JoinTokens, h.PageSecret = m.nodes, m.header.JoinTokens, nil
	// What the entry, and those who have called the machine, know of it.
	state.answers, state.reused = m.answers, m.reused
	state.begun, state.ended, state.dice, state.told, state.checkpoint = m.begun, m.ended, m.dice, m.told, m.checkpoint
	state.types.Succeed(&m.types)
	state.rememberedMax, state.goneMax, state.trail.ChunkBytes = m.rememberedMax, m.goneMax, m.trail.ChunkBytes
	if h.Level >= record.LevelPlaces {
		state.trail.TakeActs(&m.trail, h.NextID, h.NextToken)
	}
	*m = *state
	m.tasks.SetPacking(record.RestingTasks{Names: m})
}

// SavedBackup is a backup that was read and verified.
type SavedBackup struct {
	Info    snapshot.BackupInfo
	machine *Machine
}

// ReadBackup reads the backup of size bytes in r, and verifies all of it: its
// checksum first, then everything that ReadSnapshot does. Errors, wrapped with
// what is wrong: ErrCorrupt, ErrUnknownCommand for what a newer version wrote,
// r's own.
func ReadBackup(r io.ReaderAt, size int64) (*SavedBackup, error) {
	b, err := readBackup(r, size)
	if err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	return b, nil
}

func readBackup(r io.ReaderAt, size int64) (*SavedBackup, error) {
	info, state, err := snapshot.OpenBackup(r, size)
	if err != nil {
		return nil, err
	}
	if info.Level > record.FeatureLevel {
		return nil, fmt.Errorf("%w: it has feature level %d, this one knows %d", ErrUnknownCommand, info.Level, record.FeatureLevel)
	}
	m, err := ReadSnapshot(state)
	if err != nil {
		return nil, err
	}
	if m.Index() != info.Index || m.Level() != info.Level {
		return nil, fmt.Errorf("%w: its header is of another state", ErrCorrupt)
	}
	return &SavedBackup{Info: info, machine: m}, nil
}

// Stats returns the counts of the backup's state, as of its last entry.
func (b *SavedBackup) Stats() Stats { return b.machine.Stats(b.machine.Stamp()) }

// Bytes estimates the memory that the backup's state takes.
func (b *SavedBackup) Bytes() int64 { return b.machine.Bytes() }

// Stamp returns the clocks of the backup's state.
func (b *SavedBackup) Stamp() record.Stamp { return b.machine.Stamp() }

// CounterJump is how far above those of a backup the ids and claim tokens of the
// cluster are that it was restored into: more than the old cluster can have
// given out since.
const CounterJump = 1 << 40

const (
	// counterUSMax is how late in time, in microseconds since the Unix epoch,
	// counters still go by it: the year 2112. A wall clock past that is wrong, and
	// would use the counters up.
	counterUSMax = 1 << 52
	// counterMax is the highest that a counter may jump to.
	counterMax = wire.IDMax - CounterJump
)

// ErrCountersUsedUp is returned for a backup whose ids or tokens could not jump
// without reaching 2^53.
var ErrCountersUsedUp = errors.New("no ids are left to jump to")

// Ground is what of a cluster outlives a restore into it.
type Ground struct {
	Stamp             record.Stamp // neither clock goes back
	Level             uint32
	NextID, NextToken uint64
	Nodes             []record.NodeRecord
	JoinTokens        []*record.JoinToken
}

// Ground returns what of the state outlives a restore. The caller owns it.
func (m *Machine) Ground() Ground {
	h := &m.header
	return Ground{Stamp: h.Stamp, Level: h.Level, NextID: h.NextID, NextToken: h.NextToken, Nodes: m.Nodes(), JoinTokens: h.JoinTokens}
}

// Contents says in words what the state holds that a restore would destroy, ""
// if nothing: then the state is empty. Nodes and the trail do not count.
func (m *Machine) Contents() string {
	for _, c := range []struct {
		count     int
		one, many string
	}{
		{m.tasks.Len(), "task", "tasks"},
		{m.gone.Len(), "task that was removed and is still remembered", "tasks that were removed and are still remembered"},
		{m.requests.Len(), "claim request that is still remembered", "claim requests that are still remembered"},
		{len(m.schedules), "schedule", "schedules"},
		{len(m.settings), "task type with settings", "task types with settings"},
	} {
		switch c.count {
		case 0:
		case 1:
			return "1 " + c.one
		default:
			return fmt.Sprintf("%d %s", c.count, c.many)
		}
	}
	return ""
}

// Graft makes the backup's state that of the cluster g, and captures it, to be
// restored there through the log:
//
//   - the next id and token are CounterJump above the backup's at least, and the
//     microseconds since it by T, and not below those since the Unix epoch, nor
//     below the cluster's: a backup can be restored again and again, and none is
//     given out twice;
//   - places of the trail, and versions of schedules, jump in the same way;
//   - the nodes and the join tokens are the cluster's;
//   - the feature level is the higher of both;
//   - T is the later of both. U is, too: what the backup's claims, and all else
//     that lives by U, had left when it was taken is left to them.
//
// The index is still the backup's: it is known when the restore ends. Graft may be
// called once; the backup has no state after it, and takes no memory. Errors:
// ErrCountersUsedUp.
func (b *SavedBackup) Graft(g Ground) (*snapshot.Snapshot, error) {
	m := b.machine
	b.machine = nil
	h := &m.header
	if g.Stamp.U > h.Stamp.U {
		m.shiftU(g.Stamp.U - h.Stamp.U)
	}
	was := h.Stamp.T
	h.Stamp.T = max(was, g.Stamp.T)
	h.NextID = jump(h.NextID, g.NextID, was, h.Stamp.T)
	h.NextToken = jump(h.NextToken, g.NextToken, was, h.Stamp.T)
	h.Level = max(h.Level, g.Level)
	h.MoveOn(nextMoment(h, was, h.Stamp.T))
	if max(h.NextID, h.NextToken, h.Moment()) > counterMax {
		return nil, fmt.Errorf("%w: the next id would be %d, the next token %d, the next place %d", ErrCountersUsedUp, h.NextID, h.NextToken, h.Moment())
	}
	m.nodes, h.JoinTokens = slices.Clone(g.Nodes), g.JoinTokens
	return m.Snapshot(), nil
}

// jump returns what follows the counter next of a backup, whose T is at was, in a
// cluster whose own counter is at ground, at the time now by T. It grows by one
// with each microsecond of now, whatever next is.
func jump(next, ground uint64, was, now int64) uint64 {
	to := next + CounterJump
	if now > 0 && now < counterUSMax/1000 {
		to = max(to+uint64(max(now-max(was, 0), 0))*1000, uint64(now)*1000)
	}
	return max(to, ground)
}

// nextMoment is jump of the moment, from the feature level on that knows it.
func nextMoment(h *record.Header, was, now int64) uint64 {
	if h.Level < record.LevelPlaces {
		return 0
	}
	return jump(h.Moment()+1, 0, was, now)
}

// FirstPlace is where the places of a cluster begin that is raised to the level: above those
// that another one, whose backup it may get, had given out by now, in milliseconds since the Unix
// epoch. Below the level that knows it, it is 0.
func FirstPlace(level uint32, now int64) uint64 {
	if level < record.LevelPlaces {
		return 0
	}
	return jump(0, 0, now, now)
}

// shiftU moves the lease clock by d, and with it all saved times that go by it.
// What is derived of them is out of date then: only a capture may follow.
func (m *saved) shiftU(d int64) {
	m.header.Stamp.U += d
	for _, t := range m.tasks.All() {
		if t.Status == record.StatusClaimed {
			t.LeaseEndU += d
		}
		if record.IsFinalizing(t) {
			options, parent := *t.Options, *t.Options.Parent
			f := *parent.Finalization
			f.EndU += d
			parent.Finalization, options.Parent, t.Options = &f, &parent, &options
		}
	}
	for _, seq := range m.requests.IDs() {
		if r := m.requests.Edit(seq); r.Live == 0 {
			r.ForgetU += d
			m.requests.Rest(seq)
		}
	}
	for _, id := range m.gone.IDs() {
		m.gone.Edit(id).ForgetU += d
		m.gone.Rest(id)
	}
}

// JumpCounters makes the next id, claim token and place jump as Graft does, now being
// the calendar in milliseconds since the Unix epoch. It is for the state of a
// cluster that may have lost its newest entries: what those gave out must not be
// given out again. A restore that is under way is given up: the rest of it may be
// lost. So are the join tokens: one may have been revoked or used up; and the page's
// secret, which the disks of the nodes have that are left behind. It returns ErrCountersUsedUp, and changes nothing, if there is no room.
func (m *Machine) JumpCounters(now int64) error {
	h := &m.header
	now = max(now, h.Stamp.T)
	id, token := jump(h.NextID, 0, h.Stamp.T, now), jump(h.NextToken, 0, h.Stamp.T, now)
	moment := nextMoment(h, h.Stamp.T, now)
	if max(id, token, moment) > counterMax {
		return fmt.Errorf("%w: the next id would be %d, the next token %d, the next place %d", ErrCountersUsedUp, id, token, moment)
	}
	h.NextID, h.NextToken = id, token
	h.MoveOn(moment)
	m.partial, h.JoinTokens, h.PageSecret = nil, nil, nil
	return nil
}
