package fsm

import (
	"fmt"

	"github.com/tidwall/btree"
)

// resetIndexes empties everything that is derived.
func (m *Machine) resetIndexes() {
	m.counts = [StatusCancelled + 1]int64{}
	m.types = map[string]*typeState{}
	m.ready = newReadyTypes()
	m.keys = map[string]uint64{}
	m.claims = btree.Map[uint64, claimRef]{}
	m.requestIDs = map[string]uint64{}
	m.forgetting = newForgetting()
	m.remembered = 0
	m.bytes = 0
}

// rebuild builds everything that is derived from what is saved. Errors:
// ErrCorrupt, wrapped, when the saved records contradict each other.
func (m *Machine) rebuild() error {
	m.resetIndexes()
	for id, t := range m.tasks.all() {
		if err := m.index(t); err != nil {
			return fmt.Errorf("task %d: %w", id, err)
		}
	}
	for seq, r := range m.requests.all() {
		if err := m.indexRequest(seq, r); err != nil {
			return fmt.Errorf("claim request %d: %w", seq, err)
		}
	}
	return nil
}

func (m *Machine) index(t *Task) error { return nil }

func (m *Machine) indexRequest(seq uint64, r *request) error { return nil }
