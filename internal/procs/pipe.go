package procs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe replaces the log file of a node's processes. A goroutine copies from it to the file, until
// it is told to stop.
type pipe struct {
	file        *os.File
	read, write *os.File
	ended       chan struct{} // closed when reading has ended

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	held    bool // reading must pause
	waits   bool // reading has paused
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

// copy copies until the pipe ends or is broken.
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

// hold pauses or resumes reading.
func (p *pipe) hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	p.changed.Broadcast()
}

// fillWait is the time without progress after which a pipe counts as full.
const fillWait = 20 * time.Millisecond

// stuff stops the reading and fills the pipe, so that the next line does not fit.
func (p *pipe) stuff() error {
	select {
	case <-p.ended: // it is broken
		return nil
	default:
	}
	// With a separate file description, because the process's must not change.
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
	err = write("this log is not read from here on\n")
	if err == nil { // a read under way takes some, and then waits
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

// end is called when the process has ended, and waits until its output is copied.
func (p *pipe) end() {
	p.hold(false)
	_ = p.write.Close()
	<-p.ended
	_ = p.read.Close()
}

// StopReading stops reading the process's output and fills its pipe. Errors: ErrNotRunning.
func (n *Node) StopReading() error { return n.piped((*pipe).stuff) }

// GoOnReading ends StopReading.
func (n *Node) GoOnReading() error {
	return n.piped(func(p *pipe) error { p.hold(false); return nil })
}

// BreakLog closes the pipe of the process's output. Errors: ErrNotRunning.
func (n *Node) BreakLog() error {
	return n.piped(func(p *pipe) error { _ = p.read.Close(); return nil })
}

// piped calls do with the pipe of the running process.
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
