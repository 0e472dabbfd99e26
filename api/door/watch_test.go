package door

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/claimq/claimq/api/conntest"
)

// TestConnWatch_gone checks that a client that goes is noticed: at once while the connection is watched, or at the
// end if the watching had not begun.
func TestConnWatch_gone(t *testing.T) {
	t.Parallel()
	for name, hangUp := range conntest.HangUps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, watched := range []bool{true, false} {
				ours, theirs := conntest.Pair(t)
				// A past deadline, as reading the request may have left.
				if err := ours.SetReadDeadline(time.Unix(1, 0)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(context.Background())
				w := watch(tlsLike{ours}, cancel)
				if watched {
					<-time.After(2 * watchAfter) // it is most likely in the poller by then
				}
				if err := hangUp(theirs); err != nil {
					t.Fatal(err)
				}
				if watched {
					<-ctx.Done()
				}
				w.end()
				if !errors.Is(context.Cause(ctx), ErrGone) {
					t.Errorf("watched %v: got %v", watched, context.Cause(ctx))
				}
			}
		})
	}
}

// TestConnWatch_closedHere checks that a client counts as gone if this side closed its connection before it was
// watched, to make room for others.
func TestConnWatch_closedHere(t *testing.T) {
	t.Parallel()
	ours, _ := conntest.Pair(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	w := watch(ours, cancel)
	defer w.end()
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	<-w.done
	if !errors.Is(context.Cause(ctx), ErrGone) {
		t.Errorf("got %v", context.Cause(ctx))
	}
}

// tlsLike is a connection around another one.
type tlsLike struct{ net.Conn }

func (c tlsLike) NetConn() net.Conn { return c.Conn }

// TestConnWatch_here checks that a client that sends its next request is still there, and that the request can be
// read.
func TestConnWatch_here(t *testing.T) {
	t.Parallel()
	ours, theirs := conntest.Pair(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	for range 3 {
		w := watch(ours, cancel)
		<-time.After(2 * watchAfter)
		if _, err := io.WriteString(theirs, "next"); err != nil {
			t.Fatal(err)
		}
		<-time.After(watchAfter)
		w.end()
		got := make([]byte, 4)
		if _, err := io.ReadFull(ours, got); err != nil || string(got) != "next" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if ctx.Err() != nil {
		t.Errorf("gone: %v", context.Cause(ctx))
	}
}
