package child

import "syscall"

// Attr puts a child into its own process group, so that all of it can be signalled, and makes the kernel kill the
// child when the thread that started it ends, even by kill -9 of the worker. That thread must be kept while the child
// runs.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
