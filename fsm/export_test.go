package fsm

import "github.com/claimq/claimq/fsm/record"

// rebuild computes everything derived from what is saved. Errors: ErrCorrupt, wrapped, if
// the saved records contradict each other.
func (m *Machine) rebuild() error {
	m.resetIndexes()
	for id, t := range m.tasks.All() {
		if problem := m.indexTask(id, t); problem != "" {
			return contradiction(record.KindTask, id, problem)
		}
	}
	return m.rebuildRest()
}
