package hosts

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// threadNS names the network namespace of the calling thread.
const threadNS = "/proc/thread-self/ns/net"

// namespace is a network namespace without a name: it lives as long as a thread or a
// process in it. One thread of this process stays in it and starts all processes there. If
// possible no thread ends before the program does, because processes ask the kernel to die
// with the thread that started them, and threads are shared.
type namespace struct {
	file *os.File      // refers to the namespace
	home *os.File      // the namespace that this process is in
	jobs chan func()   // run one after the other by the thread
	quit chan struct{} // closed by close
	done chan struct{} // closed when the thread's work has ended
}

// newNamespace makes an empty namespace.
func newNamespace() (*namespace, error) {
	ns := &namespace{jobs: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	ready := make(chan error)
	go ns.run(ready)
	if err := <-ready; err != nil {
		<-ns.done
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return ns, nil
}

// run is the body of the namespace's thread.
func (ns *namespace) run(ready chan<- error) {
	defer close(ns.done)
	runtime.LockOSThread()
	err := ns.enter()
	ready <- err
	if err != nil {
		runtime.UnlockOSThread()
		return
	}
	for {
		select {
		case job := <-ns.jobs:
			job()
		case <-ns.quit:
			ns.leave()
			_ = ns.file.Close()
			_ = ns.home.Close()
			return
		}
	}
}

func (ns *namespace) enter() (err error) {
	if ns.home, err = os.Open(threadNS); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return errors.Join(err, ns.home.Close())
	}
	if ns.file, err = os.Open(threadNS); err != nil {
		return errors.Join(err, unix.Setns(int(ns.home.Fd()), unix.CLONE_NEWNET), ns.home.Close())
	}
	return nil
}

// leave returns the calling thread to its own namespace and unlocks it. If that fails, the
// thread ends with its goroutine, because nothing else may run on it.
func (ns *namespace) leave() {
	if unix.Setns(int(ns.home.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
}

// do calls f on the namespace's thread, after earlier calls.
func (ns *namespace) do(f func() error) error {
	result := make(chan error, 1)
	select {
	case ns.jobs <- func() { result <- f() }:
		return <-result
	case <-ns.done:
		return errClosed
	}
}

// visit calls f on a thread that is in the namespace meanwhile. It is for calls that may
// take long. f must not start a process.
func (ns *namespace) visit(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.file.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			result <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		err := f()
		ns.leave()
		result <- err
	}()
	return <-result
}

// close gives up the namespace and waits for its thread. It must be called once.
func (ns *namespace) close() {
	close(ns.quit)
	<-ns.done
}
