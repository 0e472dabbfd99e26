package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

const (
	tailFileName = "raft.tail"
	tailMagic    = 0x63717431 // "cqt1"
	tailSize     = 24
)

// logTail names an entry that the log must contain; nothing up to it may be lost. The zero
// value requires nothing.
type logTail struct {
	index uint64
	crc   uint32 // entryChecksum of the entry
}

// tailFile stores the log's tail outside the log.
//
// raft-wal takes a damaged newest append for one that a crash interrupted, and leaves it out. So
// the newest entry's index and checksum are recorded here after each append, without an fsync: a
// crash of the process keeps the record, and a loss of power may restore an older one, which
// requires less. It is fsynced before the log is truncated, so it never requires what was deleted.
//
// The file is one sector, overwritten in place:
//
//	magic 4 | CRC32C of the rest 4 | index 8 | entry's CRC32C 4 | zero 4
//
// Not safe for concurrent use: Raft appends and truncates on one goroutine, and waits for a
// leader's concurrent writes before either.
type tailFile struct {
	file  *os.File
	value logTail // as last written
}

// createTail makes the tail of an empty log in dir.
func createTail(dir string) error {
	return writeFileDurably(filepath.Join(dir, tailFileName), encodeTail(logTail{}))
}

func openTail(dir string) (*tailFile, error) {
	path := filepath.Join(dir, tailFileName)
	f, err := os.OpenFile(path, os.O_RDWR, dataFileMode)
	if errors.Is(err, os.ErrNotExist) {
		return nil, corruptLog(path, "the file is missing")
	}
	if err != nil {
		return nil, DirError(dir, err)
	}
	value, err := readTail(f)
	if err != nil {
		return nil, errors.Join(corruptLog(path, err.Error()), f.Close())
	}
	return &tailFile{file: f, value: value}, nil
}

func encodeTail(t logTail) []byte {
	b := make([]byte, tailSize)
	binary.BigEndian.PutUint32(b[0:], tailMagic)
	binary.BigEndian.PutUint64(b[8:], t.index)
	binary.BigEndian.PutUint32(b[16:], t.crc)
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli()))
	return b
}

func readTail(r io.Reader) (logTail, error) {
	b, err := io.ReadAll(io.LimitReader(r, tailSize+1))
	if err != nil {
		return logTail{}, err
	}
	if len(b) != tailSize || binary.BigEndian.Uint32(b) != tailMagic {
		return logTail{}, fmt.Errorf("not a log's tail (%d bytes)", len(b))
	}
	if binary.BigEndian.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli()) {
		return logTail{}, errors.New("checksum mismatch")
	}
	return logTail{index: binary.BigEndian.Uint64(b[8:]), crc: binary.BigEndian.Uint32(b[16:])}, nil
}

// set records the tail without waiting for the disk.
func (t *tailFile) set(tail logTail) error {
	if _, err := t.file.WriteAt(encodeTail(tail), 0); err != nil {
		return err
	}
	t.value = tail
	return nil
}

// setDurably records the tail on disk.
func (t *tailFile) setDurably(tail logTail) error {
	if err := t.set(tail); err != nil {
		return err
	}
	return t.file.Sync()
}

func (t *tailFile) close() error {
	return t.file.Close()
}
