package trail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/fsm/event"
)

// tailMax bounds the part of an audit file's end that is examined when it is opened: more than a loss of power can
// have damaged.
const tailMax = 2 * syncBytes

// fileMode is restrictive because an audit file tells who did what.
const fileMode = 0o640

// auditFile is an open audit file, locked for this process.
type auditFile struct {
	file  *os.File
	empty bool
	at    event.Pos // of the last line, if the file is not empty
	cut   int64     // bytes of an incomplete end that were cut off
}

// openAuditFile opens or creates the file at path, and cuts off an incomplete end. It refuses a file that is not an audit
// file.
func openAuditFile(path string) (*auditFile, error) {
	opened, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return nil, err
	}
	f := &auditFile{file: opened}
	if err := f.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), opened.Close())
	}
	return f, nil
}

// begin locks the file and finds its end.
func (f *auditFile) begin() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if err := unix.Flock(int(f.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another process writes it: %w", err)
	}
	size := info.Size()
	from := max(0, size-tailMax)
	tail := make([]byte, size-from)
	if _, err := f.file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if from > 0 { // the tail begins within a line
		skip := bytes.IndexByte(tail, '\n') + 1
		from, tail = from+int64(skip), tail[skip:]
	}
	good, at, ok := lastPlace(tail)
	if !ok {
		return errors.New("it is no audit file: name another one, or move this one away")
	}
	f.empty, f.at = from+int64(good) == 0, at
	if f.cut = int64(len(tail) - good); f.cut == 0 {
		return nil
	}
	return f.file.Truncate(from + int64(good))
}

// lastPlace returns the length of the complete, ordered lines at the end of an audit file, and the place of the last
// one. ok is false if they are not lines of an audit file.
func lastPlace(tail []byte) (good int, at event.Pos, ok bool) {
	for {
		line, _, whole := bytes.Cut(tail[good:], []byte{'\n'})
		next, isLine := linePlace(line)
		switch {
		case whole && isLine && (good == 0 || After(next, at) || next == at && isDenial(line)):
			good, at = good+len(line)+1, next
		case good > 0 || len(tail) == 0:
			return good, at, true
		default: // at most the first line, cut
			n := min(len(line), len(lineHead))
			return 0, at, !whole && string(line[:n]) == lineHead[:n]
		}
	}
}

// lineHead is the beginning of every line.
const lineHead = `{"index":`

// linePlace parses the place in a line, given without its newline.
func linePlace(line []byte) (at event.Pos, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(lineHead))
	index, rest, ok2 := bytes.Cut(rest, []byte(`,"sub":`))
	sub, rest, ok3 := bytes.Cut(rest, []byte{','})
	if !ok || !ok2 || !ok3 || !bytes.HasSuffix(rest, []byte{'}'}) || bytes.IndexByte(rest, 0) >= 0 {
		return at, false
	}
	i, err := strconv.ParseUint(string(index), 10, 64)
	s, err2 := strconv.ParseUint(string(sub), 10, 32)
	return event.Pos{Index: i, Sub: uint32(s)}, err == nil && err2 == nil
}

func (f *auditFile) write(lines []byte) error {
	_, err := f.file.Write(lines)
	return err
}

func (f *auditFile) sync() error { return f.file.Sync() }

// close syncs and closes the file.
func (f *auditFile) close() error { return errors.Join(f.sync(), f.file.Close()) }
