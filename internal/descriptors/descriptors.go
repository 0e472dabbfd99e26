// Package descriptors keeps a process going that runs out of file descriptors: what each part of
// it may take of them, and how connections are accepted while none is left.
package descriptors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

const (
	// Files are kept for what a node opens beside connections: its log, snapshots,
	// certificates, the audit file.
	Files = 64
	// least is what a node needs at the least: with fewer it could serve only a few connections.
	least = 2 * Files
	// acceptPause is how long nothing is accepted once not even one descriptor is free.
	acceptPause = 50 * time.Millisecond
)

// Limit returns how many descriptors the process may have, RLIMIT_NOFILE.
func Limit() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read RLIMIT_NOFILE: %w", err)
	}
	return l.Cur, nil
}

// Divide says how many of the clients' connections and of those to and from other nodes fit into limit
// beside Files: all that are wanted, or if they do not fit, half of the room for each of
// the two.
func Divide(limit uint64, clients, peers int) (forClients, forPeers int, err error) {
	if limit < least {
		return 0, 0, fmt.Errorf("the process may open %d files (RLIMIT_NOFILE): it must be %d or more", limit, least)
	}
	room := limit - Files
	forPeers = int(min(uint64(peers), max(room/2, room-min(room, uint64(clients)))))
	return int(min(uint64(clients), room-uint64(forPeers))), forPeers, nil
}

// Listener accepts connections although the process runs out of descriptors. It holds
// one back, by which those that come while there is no other are refused rather than left
// to wait. Accept is for one goroutine.
type Listener struct {
	net.Listener
	// MakeRoom closes a connection that can be done without; false if there is none.
	MakeRoom func() bool
	// Refuse answers a connection that there is no descriptor for, and closes it.
	Refuse func(net.Conn)
	// Failed is told of each failure.
	Failed func(error)

	spare *os.File
}

// Accept returns the next connection; its errors are those of a closed listener.
func (l *Listener) Accept() (net.Conn, error) {
	l.hold()
	for {
		conn, err := l.Listener.Accept()
		if !passes(err) {
			return conn, err
		}
		l.Failed(err)
		l.lend()
		conn, err = l.Listener.Accept()
		if err != nil {
			if !passes(err) {
				return nil, err
			}
			pause.For(context.Background(), acceptPause)
			l.hold()
			continue
		}
		if l.hold() || l.MakeRoom() {
			return conn, nil
		}
		l.Refuse(conn)
		l.hold()
	}
}

// passes reports whether err is of the system and not of the listener, so that the next try may
// have another outcome.
func passes(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// hold takes the spare descriptor; false if there is none.
func (l *Listener) hold() bool {
	if l.spare == nil {
		l.spare, _ = os.Open(os.DevNull)
	}
	return l.spare != nil
}

func (l *Listener) lend() {
	if l.spare != nil {
		_ = l.spare.Close()
		l.spare = nil
	}
}
