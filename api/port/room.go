package port

import (
	"context"
	"net"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// An answer is in memory from when the state is read for it until the other side
// has taken it. Whoever asks for large ones and does not read would have a node keep
// as many as it has connections. So what is read or rendered and not written yet is
// bounded for all connections together.

// unsentBytes bounds what the system keeps of a connection's answers that it has
// not even sent: it counts for the node's memory too.
const unsentBytes = 128 << 10

// Room is the memory for answers. It is safe for concurrent use.
type Room struct {
	most int64

	mu    sync.Mutex // guards what follows
	held  int64
	freed chan struct{} // closed when there is more room; nil: nobody waits for that
}

// Take takes n bytes, false if there are not so many. Whatever one answer takes,
// there is room for it when there is no other.
func (a *Room) Take(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.takeLocked(n)
}

func (a *Room) takeLocked(n int64) bool {
	if a.held > 0 && a.held+n > a.most {
		return false
	}
	a.held += n
	return true
}

// Wait takes n bytes as soon as there are so many, false if ctx ends before.
func (a *Room) Wait(ctx context.Context, n int64) bool {
	for {
		a.mu.Lock()
		if a.takeLocked(n) {
			a.mu.Unlock()
			return true
		}
		if a.freed == nil {
			a.freed = make(chan struct{})
		}
		freed := a.freed
		a.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// Give gives n bytes back.
func (a *Room) Give(n int64) {
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= n
	if a.freed != nil {
		close(a.freed)
		a.freed = nil
	}
}

// Taken returns how many bytes are taken.
func (a *Room) Taken() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// Full is the refusal of an answer that there is no room for.
func (a *Room) Full() *refuse.Refusal {
	return refuse.Overloaded(nodes.BoundAnswers, "The server holds as many large answers that were not read yet as it may, of "+strconv.FormatInt(a.most, 10)+" bytes")
}

// boundUnsent bounds what the system keeps unsent of conn.
func boundUnsent(conn net.Conn) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return // it is closed
	}
	// Where the system cannot, it keeps more.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
