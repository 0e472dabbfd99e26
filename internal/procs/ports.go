package procs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Ports are below the kernel's range for outgoing connections, so that none of those takes
// the port of a node before it listens, or while it is down.
const (
	portMin   = 20_000
	portCount = 12_000
)

var errNoPort = errors.New("no free port between 20000 and 32000")

// TakePorts takes count free ports of 127.0.0.1 for nodes that the caller starts itself.
// Until release no other caller gets one of them: a lock on a file with its number protects
// each.
func TakePorts(count int) (numbers []int, release func(), err error) {
	var offsets []int
	for i := range count {
		offsets = append(offsets, i)
	}
	base, release, err := TakePortsFrom(offsets...)
	for _, offset := range offsets {
		numbers = append(numbers, base+offset)
	}
	return numbers, release, err
}

// passed counts the ports that TakePortsFrom has tried in this process. The next caller gets ports after these, because
// nodes that are being stopped may still call the ports of their cluster.
var passed atomic.Int64

// TakePortsFrom is like TakePorts for ports at the given offsets, 0 or more, from a base
// port, which it returns.
func TakePortsFrom(offsets ...int) (base int, release func(), err error) {
	dir, err := portsDir()
	if err != nil {
		return 0, nil, err
	}
	start := os.Getpid()*16 + int(passed.Load()) // so that not all begin at the same one
	for i := range portCount {
		base := portMin + (start+i)%portCount
		locks, err := lockPorts(dir, base, offsets)
		if locks != nil {
			passed.Add(int64(i + slices.Max(offsets) + 1))
		}
		if err != nil || locks != nil {
			return base, func() { unlock(locks) }, err
		}
	}
	return 0, nil, errNoPort
}

// portsDir creates the folder of the locks, one for each user, because users cannot lock
// each other's files.
func portsDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("claimq-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("take ports: %w", err)
	}
	return dir, nil
}

// lockPorts locks the files of the ports at the offsets from base, nil if one is not free.
func lockPorts(dir string, base int, offsets []int) (locks []*os.File, err error) {
	for _, offset := range offsets {
		lock, err := lockPort(dir, base+offset)
		if err != nil || lock == nil {
			unlock(locks)
			return nil, err
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

// lockPort locks the port's file. It returns nil if another run has it or something listens
// there.
func lockPort(dir string, number int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take ports: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, lock.Close()
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
	if err != nil {
		return nil, lock.Close()
	}
	return lock, l.Close()
}

// unlock releases the ports.
func unlock(locks []*os.File) {
	for _, lock := range locks {
		// Unlocked explicitly, because a child that is being forked has the file open for a
		// moment longer.
		_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
		_ = lock.Close()
	}
}
