package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

// startMax bounds the time until a system serves.
const startMax = 5 * time.Minute

// startPoll is the pause between two checks whether it serves.
const startPoll = 20 * time.Millisecond

// site is the place where a system runs. Everything started there ends with it.
type site struct {
	dir     string // empty at first
	running []process
	ends    []func() error
}

// process is a server of a peer.
type process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// end ends everything that was started, in reverse order.
func (s *site) end() error {
	var errs []error
	for _, end := range slices.Backward(s.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// ports takes count ports.
func (s *site) ports(count int) ([]int, error) {
	ports, release, err := procs.TakePorts(count)
	if err == nil {
		s.ends = append(s.ends, func() error { release(); return nil })
	}
	return ports, err
}

// start starts the command with a log of that name. The command ends with the site.
func (s *site) start(name string, cmd *exec.Cmd) error {
	p := process{cmd: cmd, log: filepath.Join(s.dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if cmd.SysProcAttr = procs.ChildAttr(); cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // its end is enough to know; its log says why
		close(p.exited)
	}()
	s.running = append(s.running, p)
	s.ends = append(s.ends, func() error {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
		return nil
	})
	return nil
}

// until repeats ask until it returns no error or a process ends.
func (s *site) until(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	var ended error
	err := pause.Until(ctx, startPoll, func() error {
		err := ask(ctx)
		for _, p := range s.running {
			select {
			case <-p.exited:
				text, _ := os.ReadFile(p.log)
				ended = fmt.Errorf("%s ended: %s", p.cmd.Path, text[max(len(text)-2000, 0):])
				return nil
			default:
			}
		}
		return err
	})
	return errors.Join(err, ended)
}

// listening returns an error unless a server listens at the address.
func listening(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// local returns the loopback address with the port.
func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
