package child

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

const (
	// Grace is how long a command has between SIGTERM and SIGKILL; a worker that
	// stops waits for twice as long.
	Grace = 5 * time.Second
	// lostGrace is the same after its claim was lost: somebody else may begin with the
	// task within a second.
	lostGrace = 250 * time.Millisecond
	// groupLook is how often it is looked whether something is left of the process group
	// of a command that was stopped.
	groupLook = 10 * time.Millisecond
	// PipeGrace is how long the output of a command that has ended is still read: what
	// it left running may hold it open.
	PipeGrace = time.Second
	// stopSignalWait is how long after a command was ended by SIGTERM the worker's own is still
	// waited for: a service manager signals all processes of a service, in any order.
	stopSignalWait = time.Second
	// shellSignalled is what a shell adds to the signal that ended what it ran.
	shellSignalled = 128
)

// LostGrace is how long a command goes on after its claim was lost, whose lease ends then: not
// beyond that, as somebody else may have the task from then on, unless that is over already.
func LostGrace(leaseEnd time.Time) time.Duration {
	if left := time.Until(leaseEnd); left > 0 {
		return min(left, lostGrace)
	}
	return lostGrace
}

// Stops reports whether stopping is closed, or is so within stopSignalWait.
func Stops(stopping <-chan struct{}) bool {
	timer := time.NewTimer(stopSignalWait)
	defer timer.Stop()
	select {
	case <-stopping:
		return true
	case <-timer.C:
		return false
	}
}

// Terminated reports whether a command ended by SIGTERM, or a shell did that says so of what it
// ran.
func Terminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == syscall.SIGTERM || status.ExitStatus() == shellSignalled+int(syscall.SIGTERM))
}

// AwaitGroup waits until nothing is left of the process group of a command that has ended,
// or until over.
func AwaitGroup(group int, over <-chan time.Time) {
	look := time.NewTicker(groupLook)
	defer look.Stop()
	for syscall.Kill(-group, 0) == nil {
		// In a container without an init what lost its parent is ours to ask for.
		_, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		select {
		case <-look.C:
		case <-over:
			return
		}
	}
}

// WithoutDelay takes a command as ended that left something behind which holds its
// output open.
func WithoutDelay(err error) error {
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// Failure is how the child ended, and the end of what it wrote to standard
// error.
func Failure(err error, stderr *Lines) string {
	text := "exit code 0"
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		text = fmt.Sprintf("exit code %d", exit.ExitCode())
	case err != nil:
		text = err.Error()
	}
	if end := stderr.End(); end != "" {
		text += "\n" + end
	}
	return text
}
