package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// spoolPattern matches the names of the files for received backups.
const spoolPattern = "restore-*.tmp"

// spoolStep is the number of bytes written between two checks of the free space.
const spoolStep = 4 << 20

// Spool is a nameless file on the data folder's disk, which is removed with the process,
// however that ends. Writes go to disk in small steps, to save memory and
// avoid a burst of writes at the end.
type Spool struct {
	file *os.File
	dir  string
	min  uint64 // the setting for FreeMin
	size int64
	next int64 // size at which the free space is checked next
	back writeBack
}

// NewSpool creates an empty spool in the folder dir. freeMin is the setting for FreeMin, which
// says how many bytes of the disk stay free. The caller must close it.
func NewSpool(dir string, freeMin uint64) (*Spool, error) {
	f, err := os.CreateTemp(dir, spoolPattern)
	if noRoom(err) {
		return nil, &nodes.Overload{Bound: nodes.BoundDisk, Text: "the disk of the data folder has no room for one more file"}
	}
	if err != nil {
		return nil, fmt.Errorf("make a file to restore from: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("make a file to restore from: %w", err), f.Close())
	}
	return &Spool{file: f, dir: dir, min: freeMin, back: newWriteBack(f)}, nil
}

// Write appends b. nodes.ErrOverloaded if that would not leave enough space free.
func (s *Spool) Write(b []byte) (int, error) {
	if s.size+int64(len(b)) > s.next {
		if err := s.Room(spoolStep + uint64(len(b))); err != nil {
			return 0, err
		}
		s.next = s.size + int64(len(b)) + spoolStep
	}
	w, err := s.file.Write(b)
	s.size += int64(w)
	if noRoom(err) {
		err = s.full("the disk of the data folder is full")
	}
	if err == nil {
		err = s.back.wrote(w, 0)
	}
	return w, err
}

// Room returns nodes.ErrOverloaded unless that many bytes can be written.
func (s *Spool) Room(bytes uint64) error {
	free, size, err := FreeSpace(s.dir)
	if err != nil {
		return err
	}
	if mark := FreeMin(s.min, size); free < mark+bytes {
		return s.full(fmt.Sprintf("the disk of the data folder has %s free, of which %s must stay free: a restore takes three times the backup's size while it runs",
			bytesize.Text(int64(free)), bytesize.Text(int64(mark))))
	}
	return nil
}

func (s *Spool) full(text string) error { return &nodes.Overload{Bound: nodes.BoundDisk, Text: text} }

// Receive fills the spool from r.
func (s *Spool) Receive(ctx context.Context, r io.Reader) error {
	buf := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got, err := r.Read(buf)
		if _, failed := s.Write(buf[:got]); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive the backup: %w", err)
		}
	}
}

// Reader returns a reader of everything written.
func (s *Spool) Reader() *io.SectionReader { return io.NewSectionReader(s.file, 0, s.size) }

// Size returns the number of bytes written.
func (s *Spool) Size() int64 { return s.size }

// Close releases the file.
func (s *Spool) Close() { _ = s.file.Close() } // its contents are no longer needed
