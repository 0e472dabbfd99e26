package child

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// stderrKept is the number of bytes from the end of a child's standard error that are kept with its failure.
	stderrKept = 4 << 10
	// passedLineMax is the length at which a passed-on line is broken.
	passedLineMax = 8 << 10
)

// Output writes one thing at a time. It is safe for concurrent use.
type Output struct {
	mu sync.Mutex
	w  io.Writer
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

func (l *Output) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Lines passes on lines, each with a prefix, and keeps the end of what was written.
type Lines struct {
	prefix func() string
	out    *Output
	line   []byte // the unfinished line; up to passedLineMax
	last   []byte // up to twice stderrKept
	cut    bool   // earlier bytes were dropped
}

// NewLines returns Lines that pass on to out. prefix is called for each line.
func NewLines(prefix func() string, out *Output) *Lines { return &Lines{prefix: prefix, out: out} }

// Write never fails, because a worker whose terminal is gone should work on.
func (t *Lines) Write(p []byte) (int, error) {
	t.keep(p)
	for rest := p; len(rest) > 0; {
		n := min(len(rest), passedLineMax-len(t.line))
		end := bytes.IndexByte(rest[:n], '\n')
		if end >= 0 {
			n = end
		}
		t.line = append(t.line, rest[:n]...)
		rest = rest[n:]
		switch {
		case end >= 0:
			rest = rest[1:]
			t.pass()
		case len(t.line) == passedLineMax:
			t.pass()
		}
	}
	return len(p), nil
}

func (t *Lines) pass() {
	_, _ = fmt.Fprintf(t.out, "%s%s\n", t.prefix(), t.line)
	t.line = t.line[:0]
}

// Flush passes on a last line without an end.
func (t *Lines) Flush() {
	if len(t.line) > 0 {
		t.pass()
	}
}

func (t *Lines) keep(p []byte) {
	if len(p) > stderrKept {
		p, t.cut, t.last = p[len(p)-stderrKept:], true, t.last[:0]
	}
	t.last = append(t.last, p...)
	if n := len(t.last) - stderrKept; n > stderrKept {
		t.last, t.cut = append(t.last[:0], t.last[n:]...), true
	}
}

// End returns the end of what was written, beginning with a whole character.
func (t *Lines) End() string {
	last, cut := t.last, t.cut
	if n := len(last) - stderrKept; n > 0 {
		last, cut = last[n:], true
	}
	if cut {
		for i := 0; i < utf8.UTFMax-1 && len(last) > 0 && !utf8.RuneStart(last[0]); i++ {
			last = last[1:]
		}
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(last), "\uFFFD"))
	if cut {
		text = "..." + text
	}
	return text
}
