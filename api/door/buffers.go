package door

import (
	"slices"
	"sync"
)

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
