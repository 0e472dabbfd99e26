package storage

import (
	"errors"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// However a file is written, all of it but the end is sent to disk, in steps that are
// already in the file and one after the other, and the disk is never behind by more than
// the bound.
func TestWriteBack_isBounded(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		slack := rapid.IntRange(0, 8192).Draw(t, "slack")
		var written, sent, waited int64
		var w writeBack
		w.send = func(off, n int64) error {
			if off != sent || n != WriteBackStep || off+n > written-int64(slack) {
				t.Fatalf("sent [%d, %d) after %d, of %d bytes", off, off+n, sent, written)
			}
			sent += n
			return nil
		}
		w.await = func(off, n int64) error {
			if off != waited || off+n > sent {
				t.Fatalf("waited for [%d, %d) after %d, of %d sent", off, off+n, waited, sent)
			}
			waited += n
			return nil
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3*writeBackMax), 0, 20).Draw(t, "writes") {
			written += int64(n)
			if err := w.wrote(n, slack); err != nil {
				t.Fatal(err)
			}
			if behind := written - sent; behind >= WriteBackStep+int64(slack) {
				t.Fatalf("%d bytes are in memory alone", behind)
			}
			if behind := sent - waited; behind > writeBackMax {
				t.Fatalf("%d bytes are under way", behind)
			}
		}
	})
}

// A disk's error about a part of a snapshot is an error of that snapshot, and of nothing
// else.
func TestWriteBack_failsTheSnapshot(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken disk")
	for _, step := range []string{"send", "await"} {
		b := openTestStores(t, t.TempDir(), Config{})
		takeSnapshot(t, b, 10, "the state")
		sink := createSnapshot(t, b, 20).(*snapshotSink)
		fail := func(int64, int64) error { return broken }
		if step == "send" {
			sink.back.send = fail
		} else {
			sink.back.await = fail
		}
		if _, err := io.CopyN(sink, zeroes{}, 2*writeBackMax); !errors.Is(err, broken) {
			t.Errorf("%s: %v", step, err)
		}
		if err := sink.Cancel(); err != nil {
			t.Error(err)
		}
		takeSnapshot(t, b, 30, "the state")
		b.close(t) // a failure of the store would have failed the test
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// No descriptor of a snapshot is left open, however it ends.
func TestWriteBack_closesTheFile(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	closed := createSnapshot(t, b, 10).(*snapshotSink)
	cancelled := createSnapshot(t, b, 20).(*snapshotSink)
	if err := errors.Join(closed.Close(), cancelled.Cancel()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*snapshotSink{closed, cancelled} {
		if err := s.file.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("it was open: %v", err)
		}
	}
}
