package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/claimq/claimq/cmd/claimq/child"
)

const (
	// programFD is the descriptor of the socket in the program.
	programFD = 3
	// memoryInterval is the time between two checks of a process's memory.
	memoryInterval = time.Second
)

// process runs one process until it ends. ok is false if the process was of no use.
func (p *pool) process(ctx context.Context, number int) (ok bool, err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return false, err
	}
	defer theirs.Close()
	var of *program
	stderr := child.NewLines(func() string { return of.prefix() }, p.o.Out)
	cmd := &exec.Cmd{
		Path: p.o.Path, Args: p.o.Args, Env: append(p.o.Environ[:len(p.o.Environ):len(p.o.Environ)], "CLAIMQ_FD="+strconv.Itoa(programFD)),
		SysProcAttr: child.Attr(), Stdout: p.o.Stdout, Stderr: stderr, WaitDelay: child.PipeGrace, ExtraFiles: []*os.File{theirs},
	}
	// child.Attr may tie the process's life to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	of = newProgram(fmt.Sprintf("process %d", number), p, ours, nil)
	if err := p.children.Start(cmd); err != nil {
		return false, errors.Join(fmt.Errorf("start the command: %w", err), ours.Close())
	}
	defer p.children.Ended(cmd)
	group := cmd.Process.Pid
	_ = theirs.Close()
	gone := make(chan struct{})
	of.end = func() {
		select {
		case <-gone: // the process id may belong to another process now
		default:
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
		_ = ours.Close()
	}
	ended := make(chan error, 1)
	go func() {
		err := child.WithoutDelay(cmd.Wait())
		_ = syscall.Kill(-group, syscall.SIGKILL) // processes that it left may hold the socket open
		// Its last messages are still read.
		_ = ours.SetReadDeadline(time.Now().Add(child.PipeGrace))
		ended <- err
	}()
	p.add(of)
	defer p.remove(of)
	if ctx.Err() != nil {
		of.stop()
	}
	watching, endWatching := context.WithCancel(context.Background())
	defer endWatching()
	if p.o.MemoryPerProcess > 0 {
		go p.watchMemory(watching, of, group)
	}
	ok = of.run(func() (string, error) {
		timer := time.NewTimer(cmp.Or(p.o.closedMax, child.PipeGrace))
		defer timer.Stop()
		status := ""
		select {
		case err = <-ended:
		case <-timer.C:
			status = "it closed its socket, and was killed: "
			_ = syscall.Kill(-group, syscall.SIGKILL)
			err = <-ended
		}
		close(gone)
		stderr.Flush()
		return status + child.Failure(err, stderr), err
	})
	return ok, nil
}

// prefix returns the prefix for lines of the program's standard error. It names the task if only
// one task can have caused the line.
func (p *program) prefix() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tasks) == 1 {
		for at := range p.tasks {
			return fmt.Sprintf("task %d: ", at.id)
		}
	}
	return ""
}

// watchMemory stops the program once it exceeds its memory bound.
func (p *pool) watchMemory(ctx context.Context, of *program, pid int) {
	look := time.NewTicker(memoryInterval)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if bytes := memoryOf(pid); bytes > p.o.MemoryPerProcess && !of.isStopping() {
			of.stop()
			p.log("%s has %d bytes of memory: it is asked to end, and begun again", of.name, bytes)
			p.resize()
		}
	}
}

// socketPair returns both ends of a connection.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "socket")
	theirs = os.NewFile(uintptr(fds[1]), "socket of the program")
	defer mine.Close()
	if ours, err = net.FileConn(mine); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}
