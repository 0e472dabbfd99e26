package fsm

// Remnant returns a state of the same index, clocks, level and nodes, and of
// nothing that grows with the tasks. It stands in for a state that is dropped before
// another takes its place, and is not to be applied to, saved or shown.
func (m *Machine) Remnant() *Machine {
	left := New()
	left.header.Index, left.header.Stamp, left.header.Level = m.header.Index, m.header.Stamp, m.header.Level
	left.nodes = m.nodes
	return left
}
