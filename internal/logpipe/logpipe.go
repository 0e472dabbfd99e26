// Package logpipe writes a log to where it may not drain: a pipe that is full since its reader
// hangs, a terminal that is stopped, a reader that has gone. The process that writes never waits
// for it.
package logpipe

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bytes bounds what waits to be written.
const Bytes = 1 << 20

// FlushMax bounds how long a process that ends waits for its last lines to be written.
const FlushMax = time.Second

// Writer keeps what it is given until a goroutine of its own has written it. What is above
// Bytes, and what the writer below does not take, is dropped and counted. Its methods are safe
// for concurrent use.
type Writer struct {
	out     io.Writer
	tell    func(lines uint64)
	dropped atomic.Uint64 // lines

	mu      sync.Mutex
	changed sync.Cond // of waiting and writing
	waiting []byte
	lines   uint64 // in waiting
	missing uint64 // lines dropped that tell has not heard of
	writing bool
}

// New returns a writer to out. Once out takes lines again, tell hears how many were dropped
// before; it may write. The writer's goroutine lasts as long as the process.
func New(out io.Writer, tell func(lines uint64)) *Writer {
	w := &Writer{out: out, tell: tell}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// Write takes the whole lines of p, or drops them. It never waits and never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting)+len(p) > Bytes {
		w.missing++
		w.dropped.Add(1)
		return len(p), nil
	}
	w.waiting = append(w.waiting, p...)
	w.lines++
	w.changed.Broadcast()
	return len(p), nil
}

// Dropped returns how many writes, each a line of a log, have been dropped.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Flush waits until all has been written, for FlushMax at most.
func (w *Writer) Flush() {
	over := false
	timer := time.AfterFunc(FlushMax, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		over = true
		w.changed.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !over && (w.writing || w.lines > 0) {
		w.changed.Wait()
	}
}

func (w *Writer) run() {
	var spare []byte
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for w.lines == 0 {
			w.changed.Wait()
		}
		batch, lines := w.waiting, w.lines
		w.waiting, w.lines, w.writing = spare[:0], 0, true
		w.mu.Unlock()
		_, err := w.out.Write(batch)
		w.mu.Lock()
		spare = batch
		if err != nil {
			w.missing += lines
			w.dropped.Add(lines)
		} else if missing := w.missing; missing > 0 {
			w.missing = 0
			w.mu.Unlock()
			w.tell(missing)
			w.mu.Lock()
		}
		w.writing = false
		w.changed.Broadcast()
	}
}
