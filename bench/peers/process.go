package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// startMax is how long a system may take until it serves.
const startMax = 2 * time.Minute

// startPoll is how often it is asked.
const startPoll = 20 * time.Millisecond

// process is a server of a peer.
type process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// start starts the command, with a log of this name in dir.
func start(dir, name string, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = procs.ChildAttr()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // so that what it starts ends with it
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // that it ended says enough; its log says why
		close(p.exited)
	}()
	return p, nil
}

// end ends the process and what it started.
func (p *process) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
}

// processes are those of a peer.
type processes []*process

func (all processes) end() {
	for _, p := range all {
		p.end()
	}
}

// until asks until there is no error, or one of the processes ends.
func (all processes) until(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		for _, p := range all {
			select {
			case <-p.exited:
				text, _ := os.ReadFile(p.log)
				return fmt.Errorf("%s ended: %s", p.cmd.Path, text[max(len(text)-2000, 0):])
			default:
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// listening returns an error unless something listens at the address.
func listening(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// local returns the address of the port on loopback.
func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
