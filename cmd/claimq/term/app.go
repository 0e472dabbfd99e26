package term

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/internal/logpipe"
)

// UntilStdinEnds is a flag of `claimq server`, for a node that another process has started. The node stops when the
// pipe at its standard input is closed, so it cannot outlive that process.
const UntilStdinEnds = "until-stdin-ends"

// App gives a command its access to the outside world. Commands reach it only through these fields, so that tests can
// run them.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Interactive    bool             // stderr is a terminal, so a person may be waiting
	Width          int              // columns of the terminal at stdout; 0: no terminal
	Environ        []string         // KEY=value, as from os.Environ
	Now            func() time.Time // nil: time.Now; used for display only
	Version        string           // the program's version, for the node records
	Stopped        <-chan struct{}  // closed when the process is told to stop; nil: never
	RelaxTimers    func()           // called before a server, or a bench with its own nodes, starts anything; nil in tests

	log *logpipe.Writer // in front of Stderr; nil: none
}

// DetachStderr is for long-running commands. From then on no write to Stderr waits for a reader, and a broken pipe
// does not end the process. When lines are taken again, tell gets the number of dropped lines. dropped returns how
// many were dropped so far.
//
// It catches SIGPIPE instead of ignoring it, so that commands started by this process keep the default.
func (a *App) DetachStderr(tell func(lines uint64)) (dropped func() uint64) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a.log = logpipe.New(a.Stderr, tell)
	a.Stderr = a.log
	return a.log.Dropped
}

// FlushStderr waits a moment until a detached Stderr has written its lines.
func (a *App) FlushStderr() {
	if a.log != nil {
		a.log.Flush()
	}
}

// Clock returns the time to use for display.
func (a *App) Clock() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// Getenv returns the value of a variable, or "" if it is not set.
func (a *App) Getenv(name string) string {
	for i := len(a.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// ErrStopped is returned when the process was told to stop while it read.
var ErrStopped = errors.New("stopped before all of the input had come")

// UntilStopped returns a reader like in, whose reads end with ErrStopped when the process is told to stop. Without it
// a pipe or a terminal without input would keep the process running.
func (a *App) UntilStopped(in io.Reader) io.Reader { return &stoppable{in: in, stopped: a.Stopped} }

// stoppable is a reader that gives up when stopped is closed.
type stoppable struct {
	in      io.Reader
	stopped <-chan struct{}
}

// Read implements io.Reader. After it gives up, the read goes on in its own buffer until the process ends.
func (s *stoppable) Read(p []byte) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	buffer, done := make([]byte, len(p)), make(chan outcome, 1)
	go func() {
		n, err := s.in.Read(buffer)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return copy(p, buffer[:o.n]), o.err
	case <-s.stopped:
		return 0, ErrStopped
	}
}

// These bound the width of a terminal: no table is made narrower or wider.
const (
	terminalWidthMin = 40
	terminalWidthMax = 100_000
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// WidthOf returns the columns of the terminal f, or 0 if f is no terminal. columns is the variable COLUMNS, which
// overrides the terminal's answer.
func WidthOf(f *os.File, columns string) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	width := int(size.Col)
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		width = n
	}
	if width == 0 { // the terminal does not know, for example on a serial line
		return 0
	}
	return min(max(width, terminalWidthMin), terminalWidthMax)
}
