package procs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe is what a node's processes print to in place of a file, where somebody reads it into
// that file, until somebody does no longer.
type pipe struct {
	file        *os.File
	read, write *os.File
	ended       chan struct{} // closed once nothing is read any more

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	held    bool // nothing is to be read
	waits   bool // and nothing is
}

func openPipe(file *os.File) (*pipe, error) {
	p := &pipe{file: file, ended: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
	var err error
	if p.read, p.write, err = os.Pipe(); err != nil {
		return nil, err
	}
	go p.copy()
	return p, nil
}

// copy reads until the pipe ends, or is broken.
func (p *pipe) copy() {
	defer close(p.ended)
	buffer := make([]byte, 4<<10)
	for {
		p.mu.Lock()
		for p.held {
			p.waits = true
			p.changed.Broadcast()
			p.changed.Wait()
		}
		p.waits = false
		p.mu.Unlock()
		n, err := p.read.Read(buffer)
		if _, errWrite := p.file.Write(buffer[:n]); err != nil || errWrite != nil {
			return
		}
	}
}

// hold lets nobody read, or goes on.
func (p *pipe) hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	p.changed.Broadcast()
}

// fillWait is how long nothing more fits into a pipe that is full.
const fillWait = 20 * time.Millisecond

// stuff has nobody read the pipe and fills it, so that the next line does not fit.
func (p *pipe) stuff() error {
	select {
	case <-p.ended: // it is broken
		return nil
	default:
	}
	// By a description of its own: that which the process has stays as it is.
	end, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", p.write.Fd()), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = end.Close() }()
	write := func(text string) error {
		err := end.SetWriteDeadline(time.Now().Add(fillWait))
		if err == nil {
			_, err = end.WriteString(text)
		}
		return err
	}
	p.hold(true)
	err = write("nobody reads this log from here on\n")
	if err == nil { // who reads just now has it, and waits then
		p.mu.Lock()
		for p.held && !p.waits {
			p.changed.Wait()
		}
		p.mu.Unlock()
	}
	for _, part := range []string{string(make([]byte, 4<<10)), "\n"} {
		for err = write(part); err == nil; {
			err = write(part)
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// end is called once the process has ended, and waits for what it printed.
func (p *pipe) end() {
	p.hold(false)
	_ = p.write.Close()
	<-p.ended
	_ = p.read.Close()
}

// StopReading has nobody read what the process prints, into a pipe that is full. Errors: ErrNotRunning.
func (n *Node) StopReading() error { return n.piped((*pipe).stuff) }

// GoOnReading ends StopReading.
func (n *Node) GoOnReading() error {
	return n.piped(func(p *pipe) error { p.hold(false); return nil })
}

// BreakLog closes the pipe that the process prints to. Errors: ErrNotRunning.
func (n *Node) BreakLog() error {
	return n.piped(func(p *pipe) error { _ = p.read.Close(); return nil })
}

// piped does something with the pipe of the process that runs.
func (n *Node) piped(do func(*pipe) error) error {
	n.mu.Lock()
	p := n.pipe
	running := n.runningLocked()
	n.mu.Unlock()
	if !running || p == nil {
		return fmt.Errorf("the log of %s: %w", n.ID, ErrNotRunning)
	}
	return do(p)
}
