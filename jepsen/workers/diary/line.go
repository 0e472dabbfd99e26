package diary

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// Event is the kind of a line.
type Event string

// The events.
const (
	// Begin is a handler's first look at its context, which had not ended; Held is each later
	// one.
	Begin Event = "begin"
	Held  Event = "held"
	// Ended is a look that found the context ended; Text has the cause.
	Ended Event = "ended"
	// Return comes right before the handler returns; Text is an Outcome.
	Return Event = "return"
	// Answered is the end of a call of a bare worker, a claim or one that settles a claim; Text
	// is an Answer.
	Answered Event = "answered"
)

// Answer says who decided a call according to the library.
type Answer string

// The answers.
const (
	OfNode  Answer = "decided by a node"
	OfOther Answer = "decided by something between"
	Open    Answer = "unknown or not sent"
)

// Line is an event in a worker.
type Line struct {
	// At and To are before and after it, by Now: it happened between them.
	At int64 `json:"at"`
	To int64 `json:"to,omitempty"`

	Event   Event  `json:"e"`
	TaskID  string `json:"task,omitempty"`
	Token   int64  `json:"tok,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Deadline is the end of the lease according to the library, possibly rounded up; 0: not
	// known.
	Deadline int64  `json:"deadline,omitempty"`
	Text     string `json:"text,omitempty"`
	Why      string `json:"why,omitempty"` // the error of a call, "" on success

	Worker string `json:"-"` // set when a line is read
}

// Writer writes a diary. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Create opens a new diary, which only this process may write to.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create diary: %w", err)
	}
	return &Writer{file: f}, nil
}

// Write adds a line in one write. If that fails the process ends, because the event would be
// lost.
func (w *Writer) Write(l Line) {
	text, err := json.Marshal(l)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, err = w.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(fmt.Errorf("write diary: %w", err))
	}
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Read returns the lines of the worker's diary, without a last line that was cut off by a
// SIGKILL. A process that never wrote has none.
func Read(path, worker string) ([]Line, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read diary: %w", err)
	}
	defer f.Close()
	var lines []Line
	var broken error
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		if broken != nil {
			return nil, broken
		}
		l := Line{Worker: worker}
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			broken = fmt.Errorf("read diary %s, line %d: %w", path, len(lines)+1, err)
			continue
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read diary: %w", err)
	}
	return lines, nil
}
