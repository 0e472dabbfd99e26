package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
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
// grow beyond those of both. There is no page's secret behind it: whoever has logged in must
// do so again.
func (m *Machine) become(state *Machine) {
	h := &state.header
	last := max(h.Moment()+1, m.moment())
	h.Index, h.Chain = m.header.Index, m.header.Chain
	h.Ahead = last - h.Index
	state.nodes, h.JoinTokens, h.PageSecret = m.nodes, m.header.JoinTokens, nil
	// What the entry, and those who have called the machine, know of it.
	state.answers, state.reused = m.answers, m.reused
	state.begun, state.ended, state.command, state.told, state.checkpoint = m.begun, m.ended, m.command, m.told, m.checkpoint
	state.typesChanged += m.typesChanged + 1 // what was found by name is to be found again
	state.rememberedMax, state.goneMax, state.trail.ChunkBytes = m.rememberedMax, m.goneMax, m.trail.ChunkBytes
	*m = *state
	m.tasks.SetPacking(record.RestingTasks{Names: m})
}
