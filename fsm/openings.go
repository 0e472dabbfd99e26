package fsm

// Openings returns the types of which only the rate limit forbids claims by the
// state's clock, and not any more at t, with how many of their tasks may be
// claimed then; and when the next one opens, ok false if none does. The next
// entry opens those that are due: until then nobody else is told of them.
func (m *Machine) Openings(t int64) (due []ReadyTasks, next int64, ok bool) {
	m.openings.Scan(func(o opening) bool {
		if o.t > t {
			next, ok = o.t, true
			return false
		}
		ts := m.types[o.name]
		if n := min(int64(ts.ready), ts.slots(), ts.record.claimsAt(t)); n > 0 {
			due = append(due, ReadyTasks{Type: o.name, Count: int(n)})
		}
		return true
	})
	return due, next, ok
}
