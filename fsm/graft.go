package fsm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
	"github.com/claimq/claimq/fsm/wire"
)

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
	if max(h.NextID, h.NextToken) > counterMax {
		return nil, fmt.Errorf("%w: the next id would be %d, the next token %d", ErrCountersUsedUp, h.NextID, h.NextToken)
	}
	h.Level = max(h.Level, g.Level)
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

// JumpCounters makes the next id and claim token jump as Graft does, now being
// the calendar in milliseconds since the Unix epoch. It is for the state of a
// cluster that may have lost its newest entries: what those gave out must not be
// given out again. A restore that is under way is given up: the rest of it may be
// lost. So are the join tokens: one may have been revoked or used up; and the page's
// secret, which the disks of the nodes have that are left behind. It returns ErrCountersUsedUp, and changes nothing, if there is no room.
func (m *Machine) JumpCounters(now int64) error {
	h := &m.header
	now = max(now, h.Stamp.T)
	id, token := jump(h.NextID, 0, h.Stamp.T, now), jump(h.NextToken, 0, h.Stamp.T, now)
	if max(id, token) > counterMax {
		return fmt.Errorf("%w: the next id would be %d, the next token %d", ErrCountersUsedUp, id, token)
	}
	h.NextID, h.NextToken = id, token
	m.partial, h.JoinTokens, h.PageSecret = nil, nil, nil
	return nil
}
