package server

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// timerSlack bounds how late the kernel may wake a server's sleeping threads.
//
// Go's runtime has a thread that looks every 20 µs, while there is something to do, for threads that are blocked in a
// system call. Every fsync is such a call, so on a busy node that thread never rests: with the kernel's usual slack
// of 50 µs it takes an eighth of the node's CPU. With this slack it looks a seventh as often. No code here needs more
// precise timers.
const timerSlack = 500 * time.Microsecond

// timerSlackTried in the environment says that this process has been executed again already.
const timerSlackTried = "_CLAIMQ_TIMER_SLACK_TRIED=1"

// From prctl(2).
const (
	prSetTimerSlack = 29
	prGetTimerSlack = 30
)

// SetTimerSlack gives the process this timer slack, unless it already has a larger one. A thread inherits it from the
// one that started it, and the runtime's thread was started before main, so the process executes itself again under
// the same process id. If that is not possible, nothing changes.
func SetTimerSlack() {
	environ := os.Environ()
	for _, e := range environ {
		if e == timerSlackTried {
			return
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if slack, ok := threadTimerSlack(); !ok || slack >= timerSlack {
		return
	}
	path, err := os.Executable()
	if err != nil || strings.HasSuffix(path, " (deleted)") {
		return
	}
	if _, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, uintptr(timerSlack), 0); failed != 0 {
		return
	}
	_ = syscall.Exec(path, os.Args, append(environ, timerSlackTried)) // returns only on failure
}

// threadTimerSlack returns the timer slack of the calling thread.
func threadTimerSlack() (slack time.Duration, ok bool) {
	ns, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, prGetTimerSlack, 0, 0)
	return time.Duration(ns), failed == 0
}
