package top

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// redrawInterval is the time between two checks whether ages on the screen have changed.
	redrawInterval = 100 * time.Millisecond
	// stopWait is the time that a process waits for SIGCONT after it stopped itself. The signal may have come before.
	stopWait = 500 * time.Millisecond
)

// Options say how the view is shown.
type Options struct {
	Interval time.Duration // between looks
	Filter   []string      // like Model.Filter
	Colours  bool
}

// live is the view on a terminal.
type live struct {
	options Options
	source  looker
	model   Model
	term    *terminal
	screen  Screen
	view    *View // nil: before the first look
	drawn   string

	looks   chan looked
	looking bool
	begun   time.Time // of the last look
	running sync.WaitGroup
}

// looker is the part of Source that live uses.
type looker interface {
	Look(ctx context.Context) Look
	Interval(asked time.Duration) time.Duration
}

// looked is a look or an error. A panic becomes an error, because the program must restore the terminal before it
// ends.
type looked struct {
	look Look
	err  error
}

// Run shows the view on the terminal at in and out, until the user quits, ctx ends or the terminal is gone. first is
// the first look. When Run returns or panics, the terminal is as it was before.
func Run(ctx context.Context, source *Source, first Look, in, out *os.File, o Options) error {
	return run(ctx, source, first, in, out, o)
}

func run(ctx context.Context, source looker, first Look, in, out *os.File, o Options) (err error) {
	l := &live{
		options: o, source: source, model: Model{Filter: o.Filter}, term: newTerminal(in, out),
		looks: make(chan looked, 1), screen: Screen{Interval: o.Interval}, begun: first.At,
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := l.term.enter(); err != nil {
		_ = l.term.leave() // it already has an error to report
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() { // after any end, even a panic
		cancel()
		l.running.Wait()
		if left := l.term.leave(); err == nil {
			err = left
		}
	}()
	l.resize()
	l.view = l.model.Add(first)
	return l.loop(ctx, signals)
}

// loop draws, and looks again when it is time.
func (l *live) loop(ctx context.Context, signals chan os.Signal) error {
	tick := time.NewTicker(redrawInterval)
	defer tick.Stop()
	for {
		if err := l.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // a signal is one way to end it
		case err := <-l.term.gone:
			return err
		case s := <-signals:
			if s == syscall.SIGHUP || s == syscall.SIGQUIT {
				return nil
			}
			if err := l.signal(s); err != nil {
				return err
			}
		case k := <-l.term.typed:
			quit, err := l.press(k)
			if quit || err != nil {
				return err
			}
		case next := <-l.looks:
			l.looking = false
			if next.err != nil {
				return next.err
			}
			l.view = l.model.Add(next.look)
		case <-tick.C:
			l.lookIfDue(ctx)
		}
	}
}

// lookIfDue starts a look if it is time. Only one runs at a time.
func (l *live) lookIfDue(ctx context.Context) {
	if l.looking || l.screen.Paused || time.Since(l.begun) < l.source.Interval(l.options.Interval)-redrawInterval/2 {
		return
	}
	l.looking, l.begun = true, time.Now()
	l.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				l.looks <- looked{err: fmt.Errorf("looking: %v\n%s", p, debug.Stack())}
			}
		}()
		l.looks <- looked{look: l.source.Look(ctx)}
	})
}

func (l *live) press(k key) (quit bool, err error) {
	switch k {
	case keySuspend:
		return false, l.suspend()
	case keyRedraw:
		l.drawn = ""
		return false, nil
	}
	return l.screen.press(k, l.view), nil
}

func (l *live) signal(s os.Signal) error {
	switch s {
	case syscall.SIGTSTP:
		return l.suspend()
	case syscall.SIGCONT: // another program may have changed the terminal
		if err := l.term.leave(); err != nil {
			return err
		}
		if err := l.term.enter(); err != nil {
			return err
		}
	}
	l.resize()
	return nil
}

// suspend restores the terminal and stops the process, as Ctrl-Z does. It resumes at SIGCONT. If no shell could
// resume the process, it does nothing.
func (l *live) suspend() error {
	if orphaned() {
		return nil
	}
	if err := l.term.leave(); err != nil {
		return err
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	// It stops the whole job, as the terminal does. SIGTSTP would come to this process, which handles it.
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the process: %w", err)
	}
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-goesOn:
	case <-timer.C:
	}
	if err := l.term.enter(); err != nil {
		return err
	}
	l.resize()
	return nil
}

// orphaned reports whether there is no shell that could resume the process. In that case a terminal's stop has no
// effect either.
func orphaned() bool {
	parent := os.Getppid()
	if parent <= 0 {
		return true
	}
	session, err := unix.Getsid(0)
	parents, parentErr := unix.Getsid(parent)
	group, groupErr := unix.Getpgid(parent)
	return err != nil || parentErr != nil || groupErr != nil || parents != session || group == unix.Getpgrp()
}

// resize reads the terminal's size and draws everything again.
func (l *live) resize() {
	l.screen.Columns, l.screen.Rows = size(l.term.out)
	l.drawn = ""
}

// draw writes the frame if it differs from the one on the screen.
func (l *live) draw() error {
	l.screen.Now = time.Now()
	if l.screen.Paused {
		l.screen.Now = l.view.At
	}
	frame := Frame(Draw(l.view, l.screen), l.options.Colours)
	if frame == l.drawn {
		return nil
	}
	l.drawn = frame
	if _, err := l.term.out.WriteString(frame); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// Frame returns the output that draws the lines over the previous frame. It erases before it writes a line: after a
// line as wide as the terminal the cursor still stands on its last cell, and an erase would remove that cell.
func Frame(lines []Line, colours bool) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i < len(lines)-1 {
			b.WriteString("\x1b[K")
		} else {
			b.WriteString("\x1b[J") // and everything below
		}
		b.WriteString(line.ANSI(colours))
	}
	return b.String()
}
