//go:build !plant_restore_keeps_state && !plant_handler_dedup

package sim

import (
	"bytes"

	"github.com/claimq/claimq/fsm"
)

// readSnapshot is how a node replaces its state by a snapshot's.
func readSnapshot(_ *fsm.Machine, data []byte) (*fsm.Machine, error) {
	return fsm.ReadSnapshot(bytes.NewReader(data))
}

// answerDuplicate answers a request without the log if the node's handler can.
// It never does: the state machine decides what is a duplicate.
func (l *leader) answerDuplicate(*message) bool { return false }
