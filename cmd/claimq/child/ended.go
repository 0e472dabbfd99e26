package child

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/cause"
)

const (
	// Grace is the time between SIGTERM and SIGKILL for a command; a stopping worker waits for twice as long.
	Grace = 5 * time.Second
	// lostGrace is the same after the claim was lost, because another worker may begin the task within a second.
	lostGrace = 250 * time.Millisecond
	// groupLook is the interval of checks whether a stopped command's process group is gone.
	groupLook = 10 * time.Millisecond
	// PipeGrace limits how long the output of a command that has ended is read, because processes that it left
	// running may hold it open.
	PipeGrace = time.Second
	// stopSignalWait limits how long the worker waits for its own SIGTERM after a command was ended by one, because a
	// service manager signals all processes of a service in any order.
	stopSignalWait = time.Second
	// failureLineMax bounds the first line of a failure, in bytes.
	failureLineMax = 1 << 10
	// shellSignalled is added by a shell to the number of the signal that ended its command.
	shellSignalled = 128
)

// LostGrace returns how long a command may run on after its claim was lost: at most until the lease's end, because
// another worker may have the task from then on, unless that has passed already.
func LostGrace(leaseEnd time.Time) time.Duration {
	if left := time.Until(leaseEnd); left > 0 {
		return min(left, lostGrace)
	}
	return lostGrace
}

// Stops reports whether stopping is closed, or will be within stopSignalWait.
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

// Terminated reports whether a command was ended by SIGTERM, or is a shell that reports so of its command.
func Terminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == syscall.SIGTERM || status.ExitStatus() == shellSignalled+int(syscall.SIGTERM))
}

// AwaitGroup waits until the process group of a command that has ended is gone, or until over.
func AwaitGroup(group int, over <-chan time.Time) {
	look := time.NewTicker(groupLook)
	defer look.Stop()
	for syscall.Kill(-group, 0) == nil {
		// In a container without an init this process reaps orphans.
		_, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		select {
		case <-look.C:
		case <-over:
			return
		}
	}
}

// WithoutDelay ignores that a command which has ended left processes behind that hold its output open.
func WithoutDelay(err error) error {
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// Failure describes how the child ended. Its first line is the line of the standard error that says what went wrong (of
// a traceback that of the innermost exception, otherwise the last line), followed by the exit code. Then comes the end
// of the standard error.
func Failure(err error, stderr *Lines) string {
	status := "exit code 0"
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		status = fmt.Sprintf("exit code %d", exit.ExitCode())
	case err != nil:
		status = err.Error()
	}
	end := stderr.End()
	if end == "" {
		return status
	}
	line := string(cause.Traced([]byte(end)))
	if line == "" {
		line = strings.TrimSpace(end[strings.LastIndexByte(end, '\n')+1:])
	}
	line = strings.ToValidUTF8(line[:min(len(line), failureLineMax)], "")
	text := line + " (" + status + ")"
	if line != end {
		text += "\n" + end
	}
	return text
}
