package client

import "testing"

// The memory of an answer goes on only when all of its callers have read it.
func TestSharedAnswer(t *testing.T) {
	t.Parallel()
	// Nobody else's memory is as long, so what is lent of this length is this or new.
	const n = lentBytesMax*3/4 - 3
	body := lendBody(n)
	body[0] = 'a'
	s := newSharedAnswer(answer{body: body}, 3)
	isLent := func() bool { return lendBody(n)[0] == 'a' }
	for range 2 {
		s.read()
		if isLent() {
			t.Fatal("the memory was lent while a caller has not read")
		}
	}
	// The pool may drop what it is given, now and then.
	for range 1000 {
		s.readers.Store(1)
		if s.read(); isLent() {
			return
		}
	}
	t.Error("the memory is never lent again")
}

// What is too large to keep is not lent again.
func TestSharedAnswer_large(t *testing.T) {
	t.Parallel()
	body := lendBody(lentBytesMax + 1)
	body[0] = 'b'
	for range 100 {
		newSharedAnswer(answer{body: body}, 1).read()
		if b := lendBody(lentBytesMax + 1); b[0] == 'b' {
			t.Fatal("it was lent again")
		}
	}
}
