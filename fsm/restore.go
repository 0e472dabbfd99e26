package fsm

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// Restoring is the progress of a restore.
type Restoring struct {
	Begin uint64 // index of the entry that began it
	Taken uint64 // bytes received so far
	Bytes uint64 // size of the snapshot
}

// Restoring returns the progress of the current restore; ok is false without a restore. Until the
// restore ends, the state stays empty.
func (m *Machine) Restoring() (r Restoring, ok bool) {
	if m.partial == nil {
		return r, false
	}
	return Restoring{Begin: m.partial.begin, Taken: m.partial.taken, Bytes: m.partial.bytes}, true
}

func beginRestore(m *Machine, c command.RestoreBegin) Result {
	m.partial = nil
	if m.Contents() != "" {
		return Result{Code: CodeNotEmpty}
	}
	build := &stateBuilder{m: New()}
	m.partial = &partial{begin: m.header.Index, bytes: c.Bytes, feed: snapshot.NewFeed(build), state: build.m}
	return Result{}
}

func takeChunk(m *Machine, c command.RestoreChunk) Result {
	p := m.partial
	if p == nil || p.begin != c.Begin || p.taken != c.Offset || !p.take(c.Data) {
		m.partial = nil
		return Result{Code: CodeInvalidRequest}
	}
	return Result{}
}

// take reads the next bytes of the snapshot. It reports whether they are valid.
func (p *partial) take(data []byte) bool {
	p.taken += uint64(len(data))
	return p.feed.Take(data) == nil
}

// finish returns the new state, or nil if the snapshot is incomplete or its records contradict
// each other.
func (p *partial) finish() *Machine {
	if p.taken != p.bytes || p.feed.Finish() != nil {
		return nil
	}
	return p.state
}

func endRestore(m *Machine, c command.RestoreEnd) Result {
	p := m.partial
	m.partial = nil
	if p == nil || p.begin != c.Begin {
		return Result{Code: CodeInvalidRequest}
	}
	state := p.finish()
	if state == nil || !state.header.Follows(&m.header) {
		return Result{Code: CodeInvalidRequest}
	}
	become(m, state)
	m.restored = true
	return Result{}
}

// become replaces the machine's state by state, which must not be used afterwards. Data of the
// cluster and its log stays: nodes, join tokens, the index and the chain. Moments continue above
// those of both states, and the operators' actions in the old trail follow the events of the
// backup. The page's secret is dropped, so users have to log in again.
func become(m *Machine, state *Machine) {
	h := &state.header
	last := max(h.Moment()+1, m.moment())
	h.Index, h.Chain = m.header.Index, m.header.Chain
	h.Ahead = last - h.Index
	state.nodes, h.JoinTokens, h.PageSecret = m.nodes, m.header.JoinTokens, nil
	// What the current entry, and callers of the machine, depend on.
	state.answers, state.reused = m.answers, m.reused
	state.begun, state.ended, state.dice, state.told, state.checkpoint = m.begun, m.ended, m.dice, m.told, m.checkpoint
	state.types.Succeed(&m.types.Types)
	state.requests.max, state.requests.full, state.gone.max, state.trail.ChunkBytes = m.requests.max, m.requests.full, m.gone.max, m.trail.ChunkBytes
	state.trail.TakeActs(&m.trail, h.NextID, h.NextToken)
	*m = *state
	m.tasks.SetPacking(record.EncodedTasks{Names: &m.types})
}

// SavedBackup is a backup that was read and verified.
type SavedBackup struct {
	Info    snapshot.BackupInfo
	machine *Machine
}

// ReadBackup reads and verifies the backup of size bytes in r: first its checksum, then everything
// that ReadSnapshot checks. Errors, wrapped with the cause: ErrCorrupt, ErrUnknownCommand if a
// newer version wrote it, ErrDevelopment, and errors of r.
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

// Bytes estimates the memory of the backup's state.
func (b *SavedBackup) Bytes() int64 { return b.machine.Bytes() }

// Stamp returns the clocks of the backup's state.
func (b *SavedBackup) Stamp() record.Stamp { return b.machine.Stamp() }

// CounterJump is the minimum by which a restore raises the next id and claim token above those of the
// backup. It is more than the old cluster can have counted since.
const CounterJump = 1 << 40

const (
	// counterUSMax bounds the time, in microseconds since the Unix epoch, up to which counters follow it: the year
	// 2112. A clock beyond that is wrong and would use up the counters.
	counterUSMax = 1 << 52
	// counterMax bounds the values that a counter may jump to.
	counterMax = record.IDMax - CounterJump
)

// ErrCountersUsedUp is returned if ids or tokens of a backup could not jump without reaching 2^53.
var ErrCountersUsedUp = errors.New("no ids are left to jump to")

// Ground is the part of a cluster's state that survives a restore.
type Ground struct {
	Stamp             record.Stamp // neither clock may go back
	Level             uint32
	NextID, NextToken uint64
	Nodes             []record.NodeRecord
	JoinTokens        []*record.JoinToken
}

// Ground returns the part of the state that survives a restore. The caller owns it.
func (m *Machine) Ground() Ground {
	h := &m.header
	return Ground{Stamp: h.Stamp, Level: h.Level, NextID: h.NextID, NextToken: h.NextToken, Nodes: m.Nodes(), JoinTokens: h.JoinTokens}
}

// Contents describes what the state holds that a restore would destroy, or "" if it is empty.
// Nodes and the trail do not count.
func (m *Machine) Contents() string {
	for _, c := range []struct {
		count     int
		one, many string
	}{
		{m.tasks.Len(), "task", "tasks"},
		{m.gone.table.Len(), "task that was removed and is still remembered", "tasks that were removed and are still remembered"},
		{m.requests.table.Len(), "claim request that is still remembered", "claim requests that are still remembered"},
		{len(m.schedules.all), "schedule", "schedules"},
		{len(m.types.settings), "task type with settings", "task types with settings"},
		{m.shares.table.Len(), "share with settings", "shares with settings"},
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

// Graft adapts the backup's state to the cluster g and captures it, so that it can be restored there through the
// log:
//
//   - The next id and token are at least CounterJump above the backup's, plus the microseconds since then by
//     T, and not below the microseconds since the Unix epoch or the cluster's own counters. So a backup can
//     be restored repeatedly without assigning an id twice.
//   - Trail places and schedule versions jump in the same way.
//   - The nodes and join tokens are the cluster's.
//   - The feature level is the higher of both.
//   - T is the later of both, and so is U. The backup's claims, and everything else that lives by U, keep the
//     time that they had left when it was taken.
//
// The index stays the backup's, because the new one is known only when the restore ends. Graft may be called once;
// it empties the backup. Errors: ErrCountersUsedUp.
func (b *SavedBackup) Graft(g Ground) (*snapshot.Snapshot, error) {
	m := b.machine
	b.machine = nil
	h := &m.header
	if g.Stamp.U > h.Stamp.U {
		shiftU(m, g.Stamp.U-h.Stamp.U)
	}
	was := h.Stamp.T
	h.Stamp.T = max(was, g.Stamp.T)
	h.NextID = jump(h.NextID, g.NextID, was, h.Stamp.T)
	h.NextToken = jump(h.NextToken, g.NextToken, was, h.Stamp.T)
	h.Level = max(h.Level, g.Level)
	h.MoveOn(jump(h.Moment()+1, 0, was, h.Stamp.T))
	if max(h.NextID, h.NextToken, h.Moment()) > counterMax {
		return nil, fmt.Errorf("%w: the next id would be %d, the next token %d, the next place %d", ErrCountersUsedUp, h.NextID, h.NextToken, h.Moment())
	}
	m.nodes, h.JoinTokens = slices.Clone(g.Nodes), g.JoinTokens
	return m.Snapshot(), nil
}

// jump returns the next value for a counter that is next in a backup taken at time was, and ground
// in the cluster at time now, both by T. It follows the microseconds of now, so that later
// restores jump further.
func jump(next, ground uint64, was, now int64) uint64 {
	to := next + CounterJump
	if now > 0 && now < counterUSMax/1000 {
		to = max(to+uint64(max(now-max(was, 0), 0))*1000, uint64(now)*1000)
	}
	return max(to, ground)
}

// FirstPlace returns the first trail place of a new cluster, at time now in milliseconds since the
// Unix epoch. It is above the places of another cluster whose backup may be restored.
func FirstPlace(now int64) uint64 { return jump(0, 0, now, now) }

// shiftU advances the lease clock by d, and all saved times that depend on it. Derived data is
// then out of date, so only a capture may follow.
func shiftU(m *Machine, d int64) {
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
	for _, seq := range m.requests.table.IDs() {
		if r := m.requests.table.Edit(seq); r.Live == 0 {
			r.ForgetU += d
			m.requests.table.Rest(seq)
		}
	}
	for _, id := range m.gone.table.IDs() {
		m.gone.table.Edit(id).ForgetU += d
		m.gone.table.Rest(id)
	}
}

// JumpCounters raises the next id, claim token and place as Graft does, at time now in
// milliseconds since the Unix epoch. It is for a cluster that may have lost its newest entries, so
// that what those assigned is not assigned again. It also drops a restore in progress, because the
// rest of it may be lost; join tokens, because one may have been revoked or used up; and the
// page's secret, because disks of removed nodes contain it. If there is no room it changes nothing
// and returns ErrCountersUsedUp.
func (m *Machine) JumpCounters(now int64) error {
	h := &m.header
	now = max(now, h.Stamp.T)
	id, token := jump(h.NextID, 0, h.Stamp.T, now), jump(h.NextToken, 0, h.Stamp.T, now)
	moment := jump(h.Moment()+1, 0, h.Stamp.T, now)
	if max(id, token, moment) > counterMax {
		return fmt.Errorf("%w: the next id would be %d, the next token %d, the next place %d", ErrCountersUsedUp, id, token, moment)
	}
	h.NextID, h.NextToken = id, token
	h.MoveOn(moment)
	m.partial, h.JoinTokens, h.PageSecret = nil, nil, nil
	return nil
}
