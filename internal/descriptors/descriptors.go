// Package descriptors keeps a process working that runs out of file descriptors: it divides them
// between the parts of the process, and accepts connections even when none is free.
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
	// Files is the number of descriptors kept for everything but connections: the log, snapshots,
	// certificates, the audit file.
	Files = 64
	// least is the minimum for a node: with fewer it could serve only a few connections.
	least = 2 * Files
	// acceptPause is the pause in accepting when not even one descriptor is free.
	acceptPause = 50 * time.Millisecond
)

// Limit returns the process's limit of descriptors, RLIMIT_NOFILE.
func Limit() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read RLIMIT_NOFILE: %w", err)
	}
	return l.Cur, nil
}

// Divide returns the numbers of connections from clients, and to and from other nodes, that fit
// into limit together with Files: all that are wanted or, if they do not fit, each of the two gets
// at least half of the room.
func Divide(limit uint64, clients, peers int) (forClients, forPeers int, err error) {
	if limit < least {
		return 0, 0, fmt.Errorf("the process may open %d files (RLIMIT_NOFILE): it must be %d or more", limit, least)
	}
	room := limit - Files
	forPeers = int(min(uint64(peers), max(room/2, room-min(room, uint64(clients)))))
	return int(min(uint64(clients), room-uint64(forPeers))), forPeers, nil
}

// Listener accepts connections even if the process runs out of descriptors. It holds a spare one,
// so that connections that come when no other is free are refused at once instead of having to
// wait. Accept is for one goroutine.
type Listener struct {
	net.Listener
	// MakeRoom closes a dispensable connection. It returns false if every connection is needed.
	MakeRoom func() bool
	// Refuse answers a connection that cannot be served without a descriptor, and closes it.
	Refuse func(net.Conn)
	// Failed is called with each error of accepting.
	Failed func(error)

	spare *os.File
}

// Accept returns the next connection. It fails only if the listener is closed.
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

// passes reports whether err comes from the system and not the listener, so that another try may
// succeed.
func passes(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// hold opens the spare descriptor unless it is held; false if that fails.
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
