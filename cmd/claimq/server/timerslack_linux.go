package server

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// timerSlack is how much later than asked the kernel may wake a server's threads
// out of a sleep.
//
// Go's runtime has a thread that looks, every 20 µs while there is something to
// do, for threads that a system call holds up. Every fsync is such a call, so on
// a busy node that thread never rests: with the kernel's usual slack of 50 µs it
// takes an eighth of the node's CPU. With this one it looks a seventh as often.
// Nothing here needs timers to be more exact than that.
const timerSlack = 500 * time.Microsecond

// timerSlackTried in the environment says that this process was started again
// once already.
const timerSlackTried = "_CLAIMQ_TIMER_SLACK_TRIED=1"

// Of prctl(2).
const (
	prSetTimerSlack = 29
	prGetTimerSlack = 30
)

// SetTimerSlack gives the process the timer slack above, unless it has one that
// is larger. A thread has it from the one that started it, and the runtime's was
// started before main: so the process executes itself once more, under the same
// process id. Where that is not possible all stays as it is.
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
	_ = syscall.Exec(path, os.Args, append(environ, timerSlackTried)) // returns only if it failed
}

// threadTimerSlack returns the timer slack of the thread that runs it.
func threadTimerSlack() (slack time.Duration, ok bool) {
	ns, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, prGetTimerSlack, 0, 0)
	return time.Duration(ns), failed == 0
}
