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
	// redrawInterval is how often the screen is looked at for what grows older.
	redrawInterval = 100 * time.Millisecond
	// stopWait is how long a process that has stopped itself waits for the signal that
	// it goes on, should it have come before.
	stopWait = 500 * time.Millisecond
)

// Options say how the view is shown.
type Options struct {
	Interval time.Duration // between looks
	Filter   []string      // as Model.Filter
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

// looker is what live needs of a Source.
type looker interface {
	Look(ctx context.Context) Look
	Interval(asked time.Duration) time.Duration
}

// looked is a look, or why there is none: a panic, which has to end the program
// with the terminal as it was.
type looked struct {
	look Look
	err  error
}

// Run shows the view on the terminal that in and out are, until the user quits, ctx
// ends or the terminal is gone; first is the first look. The terminal is as it was
// when Run returns or panics.
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
		_ = l.term.leave() // it has an error to tell already
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() { // whatever has ended it, a panic too
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

// lookIfDue begins a look if it is time; one at a time.
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

// press does what a key says.
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

// signal does what a signal says.
func (l *live) signal(s os.Signal) error {
	switch s {
	case syscall.SIGTSTP:
		return l.suspend()
	case syscall.SIGCONT: // whoever had the terminal meanwhile has changed it
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

// suspend gives the terminal back, stops the process as Ctrl-Z does, and goes on
// when it is told to. Where nobody could tell it to, it does nothing.
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
	// The whole job, as the terminal does. SIGTSTP would come to us, who listen to it.
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

// orphaned reports whether there is no shell that could let us go on: then a
// terminal's stop has no effect either.
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

// resize takes over the terminal's size and draws all again.
func (l *live) resize() {
	l.screen.Columns, l.screen.Rows = size(l.term.out)
	l.drawn = ""
}

// draw writes the frame, if it is another than the one that stands there.
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

// Frame returns what draws the lines over those of the frame before. What is there is
// erased before a line is written: behind one as wide as the terminal the cursor still
// stands on its last cell, which an erasure would take.
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
			b.WriteString("\x1b[J") // and all below
		}
		b.WriteString(line.ANSI(colours))
	}
	return b.String()
}
