package replica

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// stallingSink accepts all writes, and stalls once, at chunk number stallAt.
type stallingSink struct {
	raft.SnapshotSink
	stallAt int
	stall   time.Duration
	begun   []time.Time // of the writes
	sizes   []int
}

func (s *stallingSink) Write(b []byte) (int, error) {
	s.begun = append(s.begun, time.Now())
	s.sizes = append(s.sizes, len(b))
	if len(s.begun) == s.stallAt {
		<-time.After(s.stall)
	}
	return len(b), nil
}

// However long the disk stalls: from any write on there are never more bytes than the rate
// allows plus two chunks.
func TestPacedWriter_doesNotCatchUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const megabytes = 30
		sink := &stallingSink{stallAt: 100, stall: 10 * time.Second}
		begun := time.Now()
		w := newTestPacedWriter(t, sink)
		for range megabytes {
			if n, err := w.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
				t.Fatal(n, err)
			}
		}
		if took, least := time.Since(begun)-sink.stall, megabytes*time.Second*(1<<20)/SnapshotRateMax; took > least+time.Second || took < least-time.Second {
			t.Errorf("%d MiB took %v beside the stall, at this rate they take %v", megabytes, took, least)
		}
		for i := range sink.begun {
			bytes := 0
			for j := i; j < len(sink.begun); j++ {
				bytes += sink.sizes[j]
				allowed := int(sink.begun[j].Sub(sink.begun[i]).Seconds()*SnapshotRateMax) + 2*snapshotChunkSize + 1
				if bytes > allowed {
					t.Fatalf("%d bytes in %v from write %d on, %d are allowed", bytes, sink.begun[j].Sub(sink.begun[i]), i, allowed)
				}
			}
		}
	})
}

func TestPacedWriter_isStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := &stallingSink{}
		w, stop, why := newStoppablePacedWriter(t, sink)
		go func() {
			<-time.After(time.Second)
			stop()
		}()
		n, err := w.Write(make([]byte, 100<<20))
		if !errors.Is(err, why) {
			t.Fatalf("error %v", err)
		}
		if n < SnapshotRateMax-4*snapshotChunkSize || n > SnapshotRateMax+4*snapshotChunkSize {
			t.Errorf("it was stopped after %d bytes of one second", n)
		}
	})
}

func newTestPacedWriter(t *testing.T, sink raft.SnapshotSink) *pacedWriter {
	w, _, _ := newStoppablePacedWriter(t, sink)
	return w
}

// newStoppablePacedWriter returns the writer, a function that stops it, and the resulting
// error.
func newStoppablePacedWriter(t *testing.T, sink raft.SnapshotSink) (w *pacedWriter, stop func(), why error) {
	t.Helper()
	why = errors.New("it is stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return &pacedWriter{sink: sink, ctx: ctx, rate: SnapshotRateMax, due: time.Now()}, func() { cancel(why) }, why
}
