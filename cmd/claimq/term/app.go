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
