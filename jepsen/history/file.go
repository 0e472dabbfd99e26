package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Version is the version of the file format. Read refuses any other.
const Version = 1

// lineBytesMax bounds one line of a history file.
const lineBytesMax = 16 << 20

// ErrFormat is returned for a file that is not a whole history.
var ErrFormat = errors.New("not a history file of this version")

// line is one line of a history file: JSON, one field set. The first line is
// the header, the last one the end, which counts what came before, so that a
// file that was cut is noticed.
type line struct {
	Header   *header   `json:"header,omitempty"`
	Run      *Run      `json:"run,omitempty"`
	Op       *Op       `json:"op,omitempty"`
	Event    *Event    `json:"event,omitempty"`
	Sample   *Sample   `json:"sample,omitempty"`
	Dump     *Dump     `json:"dump,omitempty"`
	Told     *Told     `json:"told,omitempty"`
	Schedule *Schedule `json:"schedule,omitempty"`
	Final    *Final    `json:"final,omitempty"`
	Task     *Task     `json:"task,omitempty"`
	End      *end      `json:"end,omitempty"`
}

type header struct {
	Format  string `json:"format"` // formatName
	Version int    `json:"version"`
	Seed    int64  `json:"seed"`
}

const formatName = "claimq-history"

type end struct {
	Ops       int `json:"ops"`
	Events    int `json:"events"`
	Samples   int `json:"samples,omitempty"`
	Dumps     int `json:"dumps,omitempty"`
	Told      int `json:"told,omitempty"`
	Schedules int `json:"schedules,omitempty"` // 0 or 1
	Runs      int `json:"runs,omitempty"`      // 0 or 1
	Tasks     int `json:"tasks"`
}

// count counts what h has.
func (h *History) count() end {
	e := end{Ops: len(h.Ops), Events: len(h.Events), Samples: len(h.Samples), Dumps: len(h.Dumps), Told: len(h.Trail)}
	if h.Schedule != nil {
		e.Schedules = 1
	}
	if h.Run != nil {
		e.Runs = 1
	}
	if h.Final != nil {
		e.Tasks = len(h.Final.Tasks)
	}
	return e
}

// Write writes h as JSON lines.
func (h *History) Write(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	for l := range h.lines() {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// lines yields the lines of the file.
func (h *History) lines() iter.Seq[line] {
	return func(yield func(line) bool) {
		last := h.count()
		_ = yield(line{Header: &header{Format: formatName, Version: Version, Seed: h.Seed}}) &&
			(h.Run == nil || yield(line{Run: h.Run})) &&
			(h.Schedule == nil || yield(line{Schedule: h.Schedule})) &&
			all(h.Ops, func(op *Op) line { return line{Op: op} }, yield) &&
			all(h.Events, func(e *Event) line { return line{Event: e} }, yield) &&
			all(h.Samples, func(s *Sample) line { return line{Sample: s} }, yield) &&
			all(h.Dumps, func(d *Dump) line { return line{Dump: d} }, yield) &&
			all(h.Trail, func(t *Told) line { return line{Told: t} }, yield) &&
			(h.Final == nil || yield(line{Final: h.Final}) && all(h.Final.Tasks, func(t *Task) line { return line{Task: t} }, yield)) &&
			yield(line{End: &last})
	}
}

// all yields a line of each element, and reports whether more is wanted.
func all[T any](elements []T, of func(*T) line, yield func(line) bool) bool {
	for i := range elements {
		if !yield(of(&elements[i])) {
			return false
		}
	}
	return true
}

// Read reads what Write wrote. Errors: ErrFormat, wrapped with the line, or
// r's.
func Read(r io.Reader) (*History, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 1<<16), lineBytesMax)
	h := &History{}
	ended := false
	number := 0
	for scanner.Scan() {
		number++
		if ended {
			return nil, fmt.Errorf("line %d: something after the end: %w", number, ErrFormat)
		}
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", number, ErrFormat, err)
		}
		if (number == 1) != (l.Header != nil) {
			return nil, fmt.Errorf("line %d: the header is the first line: %w", number, ErrFormat)
		}
		var err error
		if ended, err = h.add(l); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	if !ended {
		return nil, fmt.Errorf("the file was cut, it has no end: %w", ErrFormat)
	}
	return h, nil
}

// add takes one line into h. ended is true for the last one.
func (h *History) add(l line) (ended bool, err error) {
	switch {
	case put(&h.Ops, l.Op), put(&h.Events, l.Event), put(&h.Samples, l.Sample), put(&h.Dumps, l.Dump), put(&h.Trail, l.Told):
	case l.Header != nil:
		if l.Header.Format != formatName || l.Header.Version != Version {
			return false, fmt.Errorf("%q version %d, want version %d: %w", l.Header.Format, l.Header.Version, Version, ErrFormat)
		}
		h.Seed = l.Header.Seed
	case l.Run != nil:
		h.Run = l.Run
	case l.Schedule != nil:
		h.Schedule = l.Schedule
	case l.Final != nil:
		h.Final = l.Final
	case l.Task != nil && h.Final == nil:
		return false, fmt.Errorf("a task before the final state: %w", ErrFormat)
	case l.Task != nil:
		put(&h.Final.Tasks, l.Task)
	case l.End != nil:
		if have := h.count(); have != *l.End {
			return false, fmt.Errorf("the end counts %+v, the file has %+v: %w", *l.End, have, ErrFormat)
		}
		return true, nil
	default:
		return false, fmt.Errorf("an empty line: %w", ErrFormat)
	}
	return false, nil
}

// put appends the element, unless it is nil, and reports whether it did.
func put[T any](all *[]T, element *T) bool {
	if element == nil {
		return false
	}
	*all = append(*all, *element)
	return true
}

// WriteFile writes h to path.
func (h *History) WriteFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create history file: %w", err)
	}
	if err := h.Write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close history file: %w", err)
	}
	return nil
}

// ReadFile reads the history in path.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open history file: %w", err)
	}
	h, err := Read(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return h, f.Close()
}
