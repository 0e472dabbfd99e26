package door

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoom_wait ensures that a waiter gets room when it is returned, and nothing once its time is over.
func TestRoom_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := &Room{most: 100}
		if !room.Take(1000) {
			t.Fatal("one answer alone has no room")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if room.Wait(ctx, 1) {
			t.Error("there was room")
		}
		got := make(chan bool)
		for range 2 {
			go func() { got <- room.Wait(t.Context(), 60) }()
		}
		synctest.Wait()
		room.Give(1000)
		if !<-got {
			t.Error("no room for one")
		}
		room.Give(60)
		if !<-got {
			t.Error("no room for the other")
		}
		if n := room.Taken(); n != 60 {
			t.Errorf("%d bytes are taken, want 60", n)
		}
	})
}

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
