package diary

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// Event is what a line tells.
type Event string

// The events.
const (
	// Begin is a handler's first look at its context, which had not ended; Held is
	// each further one.
	Begin Event = "begin"
	Held  Event = "held"
	// Ended is a look that found the context ended; Text has the cause.
	Ended Event = "ended"
	// Return is what the handler is about to return; Text is an Outcome.
	Return Event = "return"
	// Answered is the end of a call of a bare worker, a claim or one that settles a claim; Text
	// is an Answer.
	Answered Event = "answered"
)

// Answer is who decided over a call, by what the library says of it.
type Answer string

// The answers.
const (
	OfNode  Answer = "decided by a node"
	OfOther Answer = "decided by something between"
	Open    Answer = "unknown or not sent"
)

// Line is one thing that happened in a worker.
type Line struct {
	// At and To are before and after it, as Now counts: it was between them.
	At int64 `json:"at"`
	To int64 `json:"to,omitempty"`

	Event   Event  `json:"e"`
	TaskID  string `json:"task,omitempty"`
	Token   int64  `json:"tok,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Deadline is when the lease ends by what the library says, or a little later;
	// 0: it does not say.
	Deadline int64  `json:"deadline,omitempty"`
	Text     string `json:"text,omitempty"`
	Why      string `json:"why,omitempty"` // the error of a call, "" if it was done

	Worker string `json:"-"` // of a line that was read
}

// Writer writes a diary. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Create opens a new diary. Its process is the only one that writes to it.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create diary: %w", err)
	}
	return &Writer{file: f}, nil
}

// Write adds a line, in one write. A diary that cannot be written is the end of
// the process: what happened would not be known.
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

// Read returns the lines of the worker's diary. A last line that was cut off by a
// SIGKILL is left out. A process that never wrote has none.
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
