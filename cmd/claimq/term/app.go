package term

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/logpipe"
)

// UntilStdinEnds is the flag of `claimq server` for a node that another process has started and keeps a pipe
// to: it stops when the pipe is closed, so it cannot outlive that process.
const UntilStdinEnds = "until-stdin-ends"

// App is what a command gets from the outside world. Commands touch nothing of
// it but through these fields, so that tests can run them.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Attended       bool             // stderr is a terminal: somebody may be waiting
	Width          int              // of the terminal that stdout is, in columns; 0: it is none
	Environ        []string         // KEY=value, as os.Environ has them
	Now            func() time.Time // nil: time.Now; for what is shown alone
	Version        string           // of the program: what the node records say
	Stopped        <-chan struct{}  // closed when the process is told to stop; nil: it never is
	RelaxTimers    func()           // called before anything is started, by a server and by a bench with nodes of its own; nil in tests

	log *logpipe.Writer // in front of Stderr; nil: none
}

// DetachStderr is for commands that run on: from here on no write to Stderr waits for one that
// reads it, and none ends the process, though the pipe is broken. tell hears how many lines were
// dropped once others are taken again. It returns how many have been dropped.
//
// SIGPIPE is caught and not ignored, so that commands that this process starts have its default.
func (a *App) DetachStderr(tell func(lines uint64)) (dropped func() uint64) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a.log = logpipe.New(a.Stderr, tell)
	a.Stderr = a.log
	return a.log.Dropped
}

// FlushStderr waits a moment for what was written to a detached Stderr.
func (a *App) FlushStderr() {
	if a.log != nil {
		a.log.Flush()
	}
}

// Clock returns the time that what is shown is told by.
func (a *App) Clock() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// Getenv returns the variable's value, "" if it is not set.
func (a *App) Getenv(name string) string {
	for i := len(a.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}
