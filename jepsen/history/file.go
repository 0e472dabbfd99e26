package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
)

// Version is the version of the file format. Read refuses any other.
const Version = 2

const formatName = "claimq-history"

// lineBytesMax bounds one line of a history file.
const lineBytesMax = 16 << 20

// ErrFormat is returned for a file that is not a whole history.
var ErrFormat = errors.New("not a history file of this version")

// head is the first line of a history file, as JSON: what there is one of. Each line that
// follows is an element of a list, so many of each list, so that a file that was cut is
// noticed.
type head struct {
	Format   string    `json:"format"` // formatName
	Version  int       `json:"version"`
	Seed     int64     `json:"seed"`
	Run      *Run      `json:"run,omitempty"`
	Schedule *Schedule `json:"schedule,omitempty"`
	Final    *Final    `json:"final,omitempty"`
	Counts   []int     `json:"counts"` // of the elements of each list
}

// lists returns what there are many of, in the order of the file.
func (h *History) lists() []reflect.Value {
	lists := []any{&h.Ops, &h.Events, &h.Samples, &h.Dumps, &h.Trail}
	if h.Final != nil {
		lists = append(lists, &h.Final.Tasks)
	}
	values := make([]reflect.Value, len(lists))
	for i, list := range lists {
		values[i] = reflect.ValueOf(list).Elem()
	}
	return values
}

// Write writes h as JSON lines.
func (h *History) Write(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	first := head{Format: formatName, Version: Version, Seed: h.Seed, Run: h.Run, Schedule: h.Schedule, Final: h.Final}
	for _, list := range h.lists() {
		first.Counts = append(first.Counts, list.Len())
	}
	err := enc.Encode(first)
	for _, list := range h.lists() {
		for i := 0; i < list.Len() && err == nil; i++ {
			err = enc.Encode(list.Index(i).Addr().Interface())
		}
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Read reads what Write wrote. Errors: ErrFormat, wrapped with the line, or
// r's.
func Read(r io.Reader) (*History, error) {
	lines := &lineReader{scanner: bufio.NewScanner(r)}
	lines.scanner.Buffer(make([]byte, 1<<16), lineBytesMax)
	var first head
	if err := lines.next(&first); err != nil {
		return nil, err
	}
	h := &History{Seed: first.Seed, Run: first.Run, Schedule: first.Schedule, Final: first.Final}
	lists := h.lists()
	if first.Format != formatName || first.Version != Version || len(first.Counts) != len(lists) {
		return nil, fmt.Errorf("%q version %d, want version %d: %w", first.Format, first.Version, Version, ErrFormat)
	}
	for i, list := range lists {
		for range first.Counts[i] {
			element := reflect.New(list.Type().Elem())
			if err := lines.next(element.Interface()); err != nil {
				return nil, err
			}
			list.Set(reflect.Append(list, element.Elem()))
		}
	}
	if lines.scanner.Scan() {
		return nil, fmt.Errorf("line %d: something after the end: %w", lines.number+1, ErrFormat)
	}
	return h, nil
}

// lineReader reads lines of JSON.
type lineReader struct {
	scanner *bufio.Scanner
	number  int // of the last line
}

// next reads the next line into v.
func (l *lineReader) next(v any) error {
	l.number++
	if !l.scanner.Scan() {
		if err := l.scanner.Err(); err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		return fmt.Errorf("the file was cut, it has no line %d: %w", l.number, ErrFormat)
	}
	if err := json.Unmarshal(l.scanner.Bytes(), v); err != nil {
		return fmt.Errorf("line %d: %w: %w", l.number, ErrFormat, err)
	}
	return nil
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
