package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// errBusy is returned for a node that another fault traces: only one can.
var errBusy = errors.New("another fault traces it")

const (
	// attachTimeout bounds the wait until strace has all threads.
	attachTimeout = 10 * time.Second
	// detachTimeout bounds the wait until it has let go of them.
	detachTimeout = 10 * time.Second
	// tracePoll is how often threads are looked at.
	tracePoll = 10 * time.Millisecond
)

// tampering is what strace does to a process's syncs.
type tampering struct {
	inject string // as in --inject=SET:...
	words  string
}

// tamper attaches strace to the node until detach is called or the node ends.
// All system calls of the node get slower meanwhile, by tens of microseconds.
func (c *Cluster) tamper(ctx context.Context, n *procs.Node, t tampering) (detach func(context.Context) error, err error) {
	if !n.Running() {
		return nil, fmt.Errorf("trace %s: %w", n.ID, procs.ErrNotRunning)
	}
	if !c.claim(n) {
		return nil, fmt.Errorf("trace %s: %w", n.ID, errBusy)
	}
	const calls = "fsync,fdatasync"
	pid := n.PID()
	cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "-p", strconv.Itoa(pid),
		"-e", "trace="+calls, "-e", "inject="+calls+":"+t.inject)
	cmd.SysProcAttr = procs.ChildAttr()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		c.unclaim(n)
		return nil, fmt.Errorf("trace %s: %w", n.ID, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // waited for by end
	end := func(context.Context) error {
		defer c.unclaim(n)
		return endTracer(cmd, ended)
	}
	if err := waitAttached(ctx, pid, cmd.Process.Pid, ended); err != nil {
		err = fmt.Errorf("trace %s: %w", n.ID, errors.Join(err, end(ctx)))
		if !n.Running() {
			return nil, errors.Join(err, procs.ErrNotRunning)
		}
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return end, nil
}

// claim notes that the node is traced, false if it is already.
func (c *Cluster) claim(n *procs.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.traced[n] {
		return false
	}
	c.traced[n] = true
	return true
}

func (c *Cluster) unclaim(n *procs.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.traced, n)
}

// waitAttached waits until the tracer has all threads of the process.
func waitAttached(ctx context.Context, pid, tracer int, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	for !attached(pid, tracer) {
		select {
		case <-ended:
			return errors.New("strace ended")
		case <-ctx.Done():
			return fmt.Errorf("wait for strace: %w", context.Cause(ctx))
		case <-time.After(tracePoll):
		}
	}
	return nil
}

// attached reports whether all threads of the process have the tracer.
func attached(pid, tracer int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		return false
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err == nil && !strings.Contains(string(status), fmt.Sprintf("\nTracerPid:\t%d\n", tracer)) {
			return false
		}
	}
	return true
}

// endTracer has strace let go of the process, by force if it does not. It has
// ended by itself if the process has.
func endTracer(cmd *exec.Cmd, ended <-chan struct{}) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end strace: %w", err)
		}
		select {
		case <-ended:
			return nil
		case <-time.After(detachTimeout):
		}
	}
	return errors.New("strace does not end")
}
