package logpipe

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A reader that stops reading delays no write; lines that do not fit are counted, and
// reported where they are missing.
func TestWriter_unread(t *testing.T) {
	t.Parallel()
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var told atomic.Uint64
	w := New(pipe, func(lines uint64) { told.Add(lines) })
	line := append(bytes.Repeat([]byte("x"), 1023), '\n')
	const written = 3 * Bytes / 1024
	for range written {
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	dropped := w.Dropped()
	if dropped == 0 || dropped > written-Bytes/1024 {
		t.Errorf("%d of %d lines are dropped", dropped, written)
	}
	var got bytes.Buffer
	read := make(chan error, 1)
	go func() {
		_, err := got.ReadFrom(r)
		read <- err
	}()
	w.Flush()
	if _, err := w.Write([]byte("the last\n")); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	pipe.Close()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	text := got.String()
	if n := strings.Count(text, string(line)); n != written-int(dropped) {
		t.Errorf("%d lines are there of %d that were not dropped", n, written-int(dropped))
	}
	if !strings.HasSuffix(text, "the last\n") || told.Load() != dropped {
		t.Errorf("%d of %d dropped lines are told, and the log ends with %q", told.Load(), dropped, text[max(len(text)-20, 0):])
	}
}

// broken fails until it is repaired.
type broken struct {
	mu       sync.Mutex
	repaired bool
	got      bytes.Buffer
}

func (b *broken) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.repaired {
		return 0, errors.New("broken pipe")
	}
	return b.got.Write(p)
}

// Lines that a broken pipe rejects are counted, and the writer goes on.
func TestWriter_broken(t *testing.T) {
	t.Parallel()
	out := &broken{}
	var told atomic.Uint64
	w := New(out, func(lines uint64) { told.Add(lines) })
	for range 2 {
		_, _ = w.Write([]byte("lost\n"))
		w.Flush()
	}
	if w.Dropped() != 2 {
		t.Errorf("%d lines are dropped, want 2", w.Dropped())
	}
	out.mu.Lock()
	out.repaired = true
	out.mu.Unlock()
	_, _ = w.Write([]byte("there\n"))
	w.Flush()
	if got := out.got.String(); got != "there\n" || told.Load() != 2 {
		t.Errorf("the log is %q, and %d lines are told as dropped", got, told.Load())
	}
}

// stuck never returns from a write until it is freed.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// A process that ends waits a moment for its last lines, and no longer.
func TestWriter_Flush(t *testing.T) {
	t.Parallel()
	out := make(stuck)
	w := New(out, nil)
	_, _ = w.Write([]byte("a line\n"))
	begun := time.Now()
	w.Flush()
	if waited := time.Since(begun); waited < FlushMax {
		t.Errorf("it waited %v", waited)
	}
	close(out)
	w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing || w.lines > 0 {
		t.Error("it ended before the line was written")
	}
}
