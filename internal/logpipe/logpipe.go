// Package logpipe writes a log to a destination that may block: a full pipe whose reader hangs,
// a stopped terminal, a reader that has gone. The process that logs never waits for it.
package logpipe

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bytes bounds the data that waits to be written.
const Bytes = 1 << 20

// FlushMax bounds the wait of a process that ends for its last lines to be written.
const FlushMax = time.Second

// Writer buffers what it is given until its own goroutine has written it. Data beyond Bytes, or
// that the underlying writer rejects, is dropped and counted. Its methods are safe for
// concurrent use.
type Writer struct {
	out     io.Writer
	tell    func(lines uint64)
	dropped atomic.Uint64 // lines

	mu      sync.Mutex
	changed sync.Cond // of waiting and writing
	waiting []byte
	lines   uint64 // in waiting
	missing uint64 // dropped lines that tell has not been told of
	writing bool
}

// New returns a Writer to out. When out accepts lines again after some were dropped, tell is
// called with their number; it may write. The Writer's goroutine lasts as long as the process.
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

// Dropped returns the number of dropped writes, each a line of the log.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Flush waits until everything is written, for at most FlushMax.
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
