package door

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// An answer is in memory from when the state is read for it until the client has read it. A client that asks for
// large answers and does not read them could make a node hold one for each connection. So answers that are read
// or encoded and not written yet are bounded over all connections.

// unsentBytes bounds what the kernel buffers unsent for a connection, because that counts for the node's memory, too.
const unsentBytes = 128 << 10

// Room is the memory for answers. It is safe for concurrent use.
type Room struct {
	most int64

	mu    sync.Mutex // guards what follows
	held  int64
	freed chan struct{} // closed when there is more room; nil: no goroutine waits for that
}

// Take takes n bytes, and returns false if there is not enough room. If nothing is taken, any n fits.
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

// Wait takes n bytes as soon as there is room for them. It returns false if ctx ends before.
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

// Give returns n bytes.
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

// Taken returns the number of bytes taken.
func (a *Room) Taken() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// Full returns the refusal of an answer that there is no room for.
func (a *Room) Full() *refuse.Refusal {
	return refuse.Overloaded(nodes.BoundAnswers, "The server holds as many large answers that were not read yet as it may, of "+strconv.FormatInt(a.most, 10)+" bytes")
}

// boundUnsent bounds what the kernel buffers unsent for conn.
func boundUnsent(conn net.Conn) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return // it is closed
	}
	// Systems without this option buffer more.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}

const (
	// buffersBytes bounds the total size of kept buffers, bufferBytes the size of each.
	buffersBytes = 8 << 20
	bufferBytes  = 512 << 10
)

// Buffers are the buffers of finished large answers and bodies, kept for reuse, so that no waiting connection holds
// one. It is safe for concurrent use.
type Buffers struct {
	mu   sync.Mutex // guards what follows
	free [][]byte
	held int // bytes
}

// Get returns an empty buffer with capacity for n bytes.
func (b *Buffers) Get(n int) []byte {
	if n > bufferBytes {
		return make([]byte, 0, n)
	}
	return slices.Grow(b.take(), n)
}

// take returns the most recently kept buffer, or nil.
func (b *Buffers) take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.free) - 1
	if last < 0 {
		return nil
	}
	buffer := b.free[last]
	b.free[last] = nil
	b.free = b.free[:last]
	b.held -= cap(buffer)
	return buffer
}

// Put keeps the buffer, which must no longer be used, if there is room for it.
func (b *Buffers) Put(buffer []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cap(buffer) > bufferBytes || b.held+cap(buffer) > buffersBytes {
		return
	}
	b.held += cap(buffer)
	b.free = append(b.free, buffer[:0])
}
