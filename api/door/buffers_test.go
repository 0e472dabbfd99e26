package door

import "testing"

// TestBuffers ensures that buffers are reused with enough capacity, and that a bounded number is kept.
func TestBuffers(t *testing.T) {
	t.Parallel()
	var b Buffers
	const size = 64 << 10
	kept := make([]byte, size)
	b.Put(kept)
	got := b.Get(size)
	if len(got) != 0 || cap(got) != size || &got[:1][0] != &kept[0] {
		t.Errorf("%d bytes with room for %d, not what was given", len(got), cap(got))
	}
	b.Put(got)
	if got := b.Get(2 * size); len(got) != 0 || cap(got) < 2*size {
		t.Errorf("%d bytes with room for %d", len(got), cap(got))
	}
	b.Put(make([]byte, bufferBytes+1))
	if b.held != 0 || len(b.free) != 0 {
		t.Errorf("%d bytes are kept", b.held)
	}
	for range buffersBytes/size + 5 {
		b.Put(make([]byte, size))
	}
	if b.held != buffersBytes || len(b.free) != buffersBytes/size {
		t.Errorf("%d bytes in %d buffers are kept", b.held, len(b.free))
	}
	for range buffersBytes / size {
		b.Get(1)
	}
	if b.held != 0 {
		t.Errorf("%d bytes are kept of none", b.held)
	}
}
