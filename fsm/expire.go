package fsm

import (
	"iter"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Expire ends the claims whose lease has run out. An item changes nothing
// unless its task is still claimed with that token and that sequence number:
// so duplicates, items of a deposed leader and items that crossed an extend
// are harmless.
type Expire struct{ Items []Lease }

func (Expire) kind() kind                           { return kindExpire }
func (c Expire) about() About                       { return About{Changes: len(c.Items)} }
func (c Expire) applyTo(m *Machine) (Result, error) { return m.expire(c), nil }

// Lease identifies one state of one claim's lease.
type Lease struct {
	TaskID uint64
	Token  uint64
	// Seq grows with every extend of the claim, from 1.
	Seq uint32
	// EndU is when the lease ends by the lease clock. It is not part of the
	// command; Apply and Machine.Leases fill it in for the leader's timers.
	EndU int64
}

// leaseExpired is the error of a task that failed because its last lease ended.
const leaseExpired = "lease expired"

// expire ends the claims whose lease, as the leader saw it, is still the same.
func (m *Machine) expire(c Expire) Result {
	var result Result
	for _, l := range c.Items {
		t := m.tasks.Get(l.TaskID)
		if t == nil || t.Status != record.StatusClaimed || t.Token != l.Token || t.LeaseSeq != l.Seq {
			continue
		}
		t = m.edit(l.TaskID)
		if attemptsLeft(t) {
			m.giveBack(t, record.OutcomeExpired, "", m.backoffDelay(t))
		} else {
			m.giveUp(t, record.OutcomeExpired, "")
		}
		if t.Status == record.StatusFailed {
			t.Error = leaseExpired
		}
		m.edited(t)
		result.Expired++
	}
	return result
}

// Lease returns the lease of the task's claim, ok false if it is not claimed.
func (m *Machine) Lease(taskID uint64) (l Lease, ok bool) {
	t := m.tasks.Get(taskID)
	if t == nil || t.Status != record.StatusClaimed {
		return Lease{}, false
	}
	return leaseOf(t), true
}

// Leases yields the lease of every live claim, in token order.
func (m *Machine) Leases() iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		m.claims.Scan(func(_ uint64, ref claimRef) bool {
			return yield(leaseOf(m.tasks.Get(ref.task)))
		})
	}
}

func (c Expire) appendBody(b []byte) []byte {
	for _, l := range c.Items {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.PutID(b, 1, l.TaskID)
		b = wire.PutID(b, 2, l.Token)
		b = wire.EndLength(wire.PutUint(b, 3, uint64(l.Seq)), start)
	}
	return b
}

func (Expire) decode(r fieldReader) (Command, error) {
	var c Expire
	for r.Next() {
		switch r.Num {
		case 1:
			if c.Items == nil {
				c.Items = make([]Lease, 0, r.Run())
			}
			in := record.ReaderOf(r.Raw())
			c.Items = append(c.Items, decodeExpired(&in))
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func decodeExpired(r *record.Reader) (l Lease) {
	for r.Next() {
		switch r.Num {
		case 1:
			l.TaskID = r.ID()
		case 2:
			l.Token = r.ID()
		case 3:
			l.Seq = r.Uint32()
		default:
			r.Unknown()
		}
	}
	return l
}
