package fsm

import (
	"fmt"
	"io"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// SavedBackup is a backup that was read and verified.
type SavedBackup struct {
	Info    snapshot.BackupInfo
	machine *Machine
}

// ReadBackup reads the backup of size bytes in r, and verifies all of it: its
// checksum first, then everything that ReadSnapshot does. Errors, wrapped with
// what is wrong: ErrCorrupt, ErrUnknownCommand for what a newer version wrote,
// r's own.
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

// Bytes estimates the memory that the backup's state takes.
func (b *SavedBackup) Bytes() int64 { return b.machine.Bytes() }

// Stamp returns the clocks of the backup's state.
func (b *SavedBackup) Stamp() record.Stamp { return b.machine.Stamp() }
