package fsm

import "fmt"

// JumpCounters makes the next id and claim token jump as Graft does, now being
// the calendar in milliseconds since the Unix epoch. It is for the state of a
// cluster that may have lost its newest entries: what those gave out must not be
// given out again. A restore that is under way is given up: the rest of it may be
// lost. So are the join tokens: one may have been revoked or used up. It returns ErrCountersUsedUp, and changes nothing, if there is no room.
func (m *Machine) JumpCounters(now int64) error {
	h := &m.header
	now = max(now, h.Stamp.T)
	id, token := jump(h.NextID, 0, h.Stamp.T, now), jump(h.NextToken, 0, h.Stamp.T, now)
	if max(id, token) > counterMax {
		return fmt.Errorf("%w: the next id would be %d, the next token %d", ErrCountersUsedUp, id, token)
	}
	h.NextID, h.NextToken = id, token
	m.partial, h.JoinTokens = nil, nil
	return nil
}
