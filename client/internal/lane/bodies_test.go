package lane

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The body of a shared request is its items separated by commas, however it is read, and can be read again.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, items := range [][]string{{`{"a":1}`}, {`{"a":1}`, `{}`}, {"x", strings.Repeat("y", 5000), "", "z"}} {
		j := &Joined{Open: `{"ops":[`}
		for _, item := range items {
			j.Items = append(j.Items, [2][]byte{[]byte(item[:len(item)/2]), []byte(item[len(item)/2:])})
		}
		want := `{"ops":[` + strings.Join(items, ",") + `]}`
		if j.Size() != int64(len(want)) {
			t.Errorf("%d items: size %d, want %d", len(items), j.Size(), len(want))
		}
		if err := iotest.TestReader(j.Reader(), []byte(want)); err != nil {
			t.Errorf("%d items: %v", len(items), err)
		}
		for range 2 {
			if got, err := io.ReadAll(iotest.OneByteReader(j.Reader())); err != nil || string(got) != want {
				t.Errorf("%d items: %q, %v", len(items), got, err)
			}
		}
	}
}

// The memory of an answer is reused only after all callers have read it.
func TestPooled(t *testing.T) {
	t.Parallel()
	// No other test uses this length, so the memory is either this or new.
	const n = pooledBytesMax*3/4 - 3
	body := Alloc(n)
	body[0] = 'a'
	s := NewPooled(body, 3)
	isReused := func() bool { return Alloc(n)[0] == 'a' }
	for range 2 {
		s.Done()
		if isReused() {
			t.Fatal("the memory was reused before all callers had read it")
		}
	}
	// The pool may drop memory now and then.
	for range 1000 {
		s.readers.Store(1)
		if s.Done(); isReused() {
			return
		}
	}
	t.Error("the memory is never reused")
}

// Memory above the bound is not reused.
func TestPooled_large(t *testing.T) {
	t.Parallel()
	body := Alloc(pooledBytesMax + 1)
	body[0] = 'b'
	for range 100 {
		NewPooled(body, 1).Done()
		if b := Alloc(pooledBytesMax + 1); b[0] == 'b' {
			t.Fatal("it was reused")
		}
	}
}
