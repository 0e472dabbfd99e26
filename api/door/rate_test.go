package door

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Concurrent requests get no more than sequential ones.
func TestBucket_Concurrent(t *testing.T) {
	t.Parallel()
	b := newBucket(500)
	var got atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				if _, ok := b.Take(1); ok {
					got.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if got.Load() != 500 {
		t.Errorf("%d of 500", got.Load())
	}
}

func TestRecent(t *testing.T) {
	t.Parallel()
	r := newRecent[int](100)
	sum := func(i int) *[sha256.Size]byte { s := sha256.Sum256(fmt.Append(nil, i)); return &s }
	for i := range 1000 {
		if got := r.keep(sum(i), func() int { return i }); got != i {
			t.Fatalf("%d: %d", i, got)
		}
		if _, ok := r.get(sum(0)); !ok {
			t.Fatalf("what is asked for is gone after %d", i)
		}
		if n := r.count(); n > 100 {
			t.Fatalf("%d are kept", n)
		}
		if _, ok := r.get(sum(max(i-20, 0))); !ok {
			t.Fatalf("%d is gone after %d", i-20, i)
		}
	}
	r.put(sum(0), -1)
	if v, ok := r.get(sum(0)); !ok || v != -1 {
		t.Error(v, ok)
	}
}

// One address, or one IPv6 /64, has ten wrong keys a minute. Others have their own.
func TestTries(t *testing.T) {
	t.Parallel()
	tries, now := NewTries(), int64(time.Hour)
	a, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff")
	for i := range TriesPerMinute {
		from := a
		if i%2 == 1 {
			from = b
		}
		if _, ok := tries.Try(from, now); !ok {
			t.Fatalf("try %d is refused", i)
		}
	}
	if retry, ok := tries.Try(a, now); ok || retry <= 0 || retry > 6*time.Second {
		t.Errorf("the eleventh: %v, to be tried again in %s", ok, retry)
	}
	for _, other := range []string{"10.0.0.1", "2001:db8:0:1::1", "::1"} {
		if _, ok := tries.Try(netip.MustParseAddr(other), now); !ok {
			t.Errorf("%s is refused for somebody else", other)
		}
	}
	if _, ok := tries.Try(a, now+int64(6*time.Second)); !ok {
		t.Error("there is none after six seconds")
	}
}
