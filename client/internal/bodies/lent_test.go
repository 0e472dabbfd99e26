package bodies

import "testing"

// The memory of an answer is reused only after all callers have read it.
func TestLent(t *testing.T) {
	t.Parallel()
	// No other test lends this length, so lent memory is either this or new.
	const n = lentBytesMax*3/4 - 3
	body := Lend(n)
	body[0] = 'a'
	s := NewLent(body, 3)
	isLent := func() bool { return Lend(n)[0] == 'a' }
	for range 2 {
		s.Read()
		if isLent() {
			t.Fatal("the memory was lent while a caller has not read")
		}
	}
	// The pool may drop memory now and then.
	for range 1000 {
		s.readers.Store(1)
		if s.Read(); isLent() {
			return
		}
	}
	t.Error("the memory is never lent again")
}

// Too large memory is not lent again.
func TestLent_large(t *testing.T) {
	t.Parallel()
	body := Lend(lentBytesMax + 1)
	body[0] = 'b'
	for range 100 {
		NewLent(body, 1).Read()
		if b := Lend(lentBytesMax + 1); b[0] == 'b' {
			t.Fatal("it was lent again")
		}
	}
}
