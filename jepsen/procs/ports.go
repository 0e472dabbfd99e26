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
// connections, so that none of those takes the port of a node while it is
// down.
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

// takePorts takes count ports.
func takePorts(count int) ([]port, error) {
	// A folder for each user: nobody can lock another's files.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("claimq-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("take ports: %w", err)
	}
	var taken []port
	start := os.Getpid() * 16 % portCount
	for i := 0; i < portCount && len(taken) < count; i++ {
		number := portMin + (start+i)%portCount
		lock, err := lockPort(dir, number)
		if err != nil {
			releasePorts(taken)
			return nil, fmt.Errorf("take ports: %w", err)
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

// lockPort locks the port's file, nil if another run has it or something
// listens there.
func lockPort(dir string, number int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
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
		_ = p.lock.Close() // the lock goes with the file
	}
}
