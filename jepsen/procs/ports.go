package procs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken from below the range that the kernel gives to outgoing
// connections, so that none of those takes the port of a node before it
// listens, or while it is down.
const (
	portMin   = 20_000
	portCount = 12_000
)

// errNoPort is returned when no port is free.
var errNoPort = errors.New("no free port between 20000 and 32000")

// port is a port of 127.0.0.1 that no other run of this user takes before it is
// released: a lock on a file of its number keeps it.
type port struct {
	number int
	lock   *os.File
}

// TakePorts takes count free ports of 127.0.0.1 for nodes that the caller starts
// itself. Until release nobody else who takes ports so is given one of them.
func TakePorts(count int) (numbers []int, release func(), err error) {
	ports, err := takePorts(count)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range ports {
		numbers = append(numbers, p.number)
	}
	return numbers, func() { releasePorts(ports) }, nil
}

// TakePortsFrom is as TakePorts for ports at the given offsets, 0 or more, from one
// port, which it returns.
func TakePortsFrom(offsets ...int) (base int, release func(), err error) {
	dir, err := portsDir()
	if err != nil {
		return 0, nil, err
	}
	start := firstPort()
	for i := range portCount {
		base := portMin + (start+i)%portCount
		taken, err := takeOffsets(dir, base, offsets)
		if err != nil || taken != nil {
			return base, func() { releasePorts(taken) }, err
		}
	}
	return 0, nil, errNoPort
}

// takeOffsets takes the ports at the offsets from base, nil if one is not free.
func takeOffsets(dir string, base int, offsets []int) ([]port, error) {
	var taken []port
	for _, offset := range offsets {
		lock, err := lockPort(dir, base+offset)
		if err != nil || lock == nil {
			releasePorts(taken)
			return nil, err
		}
		taken = append(taken, port{base + offset, lock})
	}
	return taken, nil
}

// takePorts takes count ports.
func takePorts(count int) ([]port, error) {
	dir, err := portsDir()
	if err != nil {
		return nil, err
	}
	var taken []port
	start := firstPort()
	for i := 0; i < portCount && len(taken) < count; i++ {
		number := portMin + (start+i)%portCount
		lock, err := lockPort(dir, number)
		if err != nil {
			releasePorts(taken)
			return nil, err
		}
		if lock != nil {
			taken = append(taken, port{number, lock})
		}
	}
	if len(taken) < count {
		releasePorts(taken)
		return nil, errNoPort
	}
	return taken, nil
}

// portsDir makes the folder of the locks, one for each user: nobody can lock
// another's files.
func portsDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("claimq-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("take ports: %w", err)
	}
	return dir, nil
}

// firstPort is where this process begins to look, so that not all begin at one.
func firstPort() int { return os.Getpid() * 16 % portCount }

// lockPort locks the port's file, nil if another run has it or something
// listens there.
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

// releasePorts lets other runs take the ports.
func releasePorts(ports []port) {
	for _, p := range ports {
		// Unlocked first: what is being forked has the file open for a moment longer.
		_ = syscall.Flock(int(p.lock.Fd()), syscall.LOCK_UN)
		_ = p.lock.Close()
	}
}
