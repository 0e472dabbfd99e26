package door

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/claimq/claimq/api/conntest"
)

// deadlineConn records the deadlines that it is given.
type deadlineConn struct {
	conntest.Nop
	read, write []time.Time
}

func (c *deadlineConn) SetReadDeadline(t time.Time) error {
	c.read = append(c.read, t)
	return nil
}

func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	c.write = append(c.write, t)
	return nil
}

// TestConn_deadlines checks that a deadline is never early, at most deadlineSlack late, and set no more often than
// necessary.
func TestConn_deadlines(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	inner := &deadlineConn{}
	c := newPort(t).accept(inner)
	for _, ms := range []int{1000, 30_000, 120_000, 120_900, 121_000, 121_001} {
		if err := c.SetReadDeadline(at(ms)); err != nil {
			t.Fatal(err)
		}
		if ms < 100_000 {
			continue // nothing reads, so it is only noted
		}
		_, _ = c.Read(nil)
	}
	_ = c.SetDeadline(at(2000))
	_, _ = c.Read(nil)
	_, _ = c.Write(nil)
	c.reading.forget()
	_, _ = c.Read(nil)
	_ = c.SetWriteDeadline(at(2500))
	_, _ = c.Write(nil)
	_ = c.SetDeadline(time.Time{})
	for range 2 {
		_, _ = c.Read(nil)
		_, _ = c.Write(nil)
	}
	if want := []time.Time{at(121_000), at(122_001), at(3000), at(3000), {}}; !slices.Equal(inner.read, want) {
		t.Errorf("read deadlines %v, want %v", inner.read, want)
	}
	if want := []time.Time{at(3000), {}}; !slices.Equal(inner.write, want) {
		t.Errorf("write deadlines %v, want %v", inner.write, want)
	}
}

// TestConn_expires checks that a deadline ends a waiting Read: as io.EOF if nothing was ever received, because some
// clients open more connections than they use; otherwise as a timeout.
func TestConn_expires(t *testing.T) {
	t.Parallel()
	ours, theirs := conntest.Pair(t)
	c := newPort(t).accept(ours)
	soon := func() { _ = c.SetReadDeadline(time.Now().Add(20*time.Millisecond - deadlineSlack)) }
	soon()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // io.Reader's contract: EOF itself
		t.Errorf("error %v of a connection that nothing came on, want its end", err)
	}
	if _, err := theirs.Write([]byte("G")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Time{})
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("read %d bytes, error %v", n, err)
	}
	soon()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want a timeout", err)
	}
}

// TestConn_slowReader ensures that a client that reads each piece in time continues, and is cut off when it reads too
// slowly.
func TestConn_slowReader(t *testing.T) {
	t.Parallel()
	inner := &deadlineConn{}
	c := newPort(t).accept(inner)
	before := time.Now()
	_ = c.SetWriteDeadline(before.Add(WriteTimeout))
	if n, err := c.Write(make([]byte, 3*writePiece)); n != 3*writePiece || err != nil {
		t.Fatalf("%d bytes, error %v", n, err)
	}
	if len(inner.write) == 0 {
		t.Fatal("no deadline")
	}
	for _, at := range inner.write {
		if at.Before(before.Add(WriteTimeout)) || at.After(time.Now().Add(WriteTimeout+deadlineSlack)) {
			t.Errorf("a piece may take until %s after the beginning", at.Sub(before))
		}
	}
}
