package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/uuid"
)

const (
	startsFileName = "starts.json"
	// startsMax bounds the nodes whose starts are kept; the one reported longest ago is
	// dropped.
	startsMax = 1024
)

// Start is one start of a node over its data folder. A later one has a higher Number; two
// with the same Number, over copies of one folder, differ in Nonce. The zero value means
// that the folder was never started.
type Start struct {
	Number uint64 `json:"number"`
	Nonce  string `json:"nonce"`
}

// Next returns a start after s.
func (s Start) Next() Start { return Start{Number: s.Number + 1, Nonce: uuid.NewString()} }

// Supersedes reports whether a node that knows s must not trust a process of start other: its folder is
// older, or a copy.
func (s Start) Supersedes(other Start) bool {
	return s.Number > other.Number || s.Number == other.Number && s.Nonce != other.Nonce
}

// Starts are the starts of other nodes that this node was told of. They are in its data
// folder, on disk before it answers, so that a node never forgets a start. Safe for
// concurrent use.
type Starts struct {
	dir string

	noting sync.Mutex // held by Note, so that mu is not held while the disk writes

	mu   sync.Mutex
	told []toldStart // guarded by mu, also set with noting held; reported longest ago first
}

type toldStart struct {
	UUID  string `json:"uuid"`
	Start Start  `json:"start"`
}

// startsFile is the contents of the file.
type startsFile struct {
	Told []toldStart `json:"told"`
	// CRC is the CRC32C of this struct's JSON with CRC 0.
	CRC uint32 `json:"crc32c"`
}

func (f startsFile) checksum() (uint32, error) {
	f.CRC = 0
	b, err := json.Marshal(f)
	return crc32.Checksum(b, castagnoli()), err
}

// OpenStarts reads the starts in the data folder dir. ErrCorruptIdentity if the file is
// damaged.
func OpenStarts(dir string) (*Starts, error) {
	path := filepath.Join(dir, startsFileName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &Starts{dir: dir}, nil
	}
	if err != nil {
		return nil, DirError(dir, err)
	}
	var f startsFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, corruptIdentity(path, err.Error())
	}
	if crc, err := f.checksum(); err != nil || crc != f.CRC {
		return nil, corruptIdentity(path, "checksum mismatch")
	}
	return &Starts{dir: dir, told: f.Told}, nil
}

// Note records a start of the node of that identity, unless it knows one that supersedes
// it, and returns the latest that it then knows.
func (s *Starts) Note(uuid string, told Start) (latest Start, err error) {
	s.noting.Lock()
	defer s.noting.Unlock()
	kept := make([]toldStart, 0, len(s.told)+1)
	for _, t := range s.told {
		if t.UUID != uuid {
			kept = append(kept, t)
			continue
		}
		if t.Start == told || t.Start.Supersedes(told) {
			return t.Start, nil
		}
	}
	kept = append(kept, toldStart{UUID: uuid, Start: told})
	kept = kept[max(0, len(kept)-startsMax):]
	if err := s.write(kept); err != nil {
		return Start{}, err
	}
	s.mu.Lock()
	s.told = slices.Clip(kept)
	s.mu.Unlock()
	return told, nil
}

// Latest returns the latest recorded start of the node of that identity, or the zero value.
func (s *Starts) Latest(uuid string) Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.told {
		if t.UUID == uuid {
			return t.Start
		}
	}
	return Start{}
}

func (s *Starts) write(told []toldStart) error {
	f := startsFile{Told: told}
	var err error
	if f.CRC, err = f.checksum(); err != nil {
		return fmt.Errorf("encode starts: %w", err)
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode starts: %w", err)
	}
	if err := reserveOf(s.dir).replace(filepath.Join(s.dir, startsFileName), append(b, '\n')); err != nil {
		return storageError(s.dir, "write "+startsFileName, err)
	}
	return nil
}
