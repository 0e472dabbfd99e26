package confirm

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// fakeLeader has committed its log up to an index, in a term.
type fakeLeader struct {
	mu              sync.Mutex
	committed, term uint64
	// looked, if not nil, is called after the index was read.
	looked func(*fakeLeader)
}

func (l *fakeLeader) CommitIndex() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	index := l.committed
	if l.looked != nil {
		l.looked(l)
	}
	return index
}

func (l *fakeLeader) CurrentTerm() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

func (l *fakeLeader) set(committed, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed, l.term = committed, term
}

// tellPipe is a pipeline that records messages as text.
type tellPipe struct {
	mu   sync.Mutex
	sent []string
	gate chan struct{} // if not nil, messages wait until Close closes it
}

func (p *tellPipe) Consumer() <-chan raft.AppendFuture { return nil }

func (p *tellPipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		close(p.gate)
		p.gate = nil
	}
	return nil
}

func (p *tellPipe) AppendEntries(args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.mu.Lock()
	p.sent = append(p.sent, fmt.Sprintf("term %d: %d entries after %d of term %d, committed %d",
		args.Term, len(args.Entries), args.PrevLogEntry, args.PrevLogTerm, args.LeaderCommitIndex))
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		<-gate
		return nil, raft.ErrPipelineShutdown
	}
	return nil, nil
}

// take returns the messages since the last call.
func (p *tellPipe) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// tellBench is a leader's pipeline, in term 7, to a peer that has entry 10 of term 6.
type tellBench struct {
	leader *fakeLeader
	wire   *tellPipe
	pipe   *pipeline
}

// newTellBench must be called in a bubble.
func newTellBench(t *testing.T, cfg Config) *tellBench {
	b := &tellBench{leader: &fakeLeader{committed: 10, term: 7}, wire: &tellPipe{}}
	c := New(nil, cfg)
	c.raft = b.leader
	b.pipe = newPipeline(c, "b", b.wire)
	t.Cleanup(func() { _ = b.pipe.Close() })
	return b
}

// send sends the entries after prev, of term 7, like Raft.
func (b *tellBench) send(t *testing.T, prev, prevTerm uint64, entries ...uint64) {
	t.Helper()
	args := &raft.AppendEntriesRequest{Term: 7, PrevLogEntry: prev, PrevLogTerm: prevTerm, LeaderCommitIndex: b.leader.CommitIndex()}
	for _, index := range entries {
		args.Entries = append(args.Entries, &raft.Log{Index: index, Term: 7})
	}
	if _, err := b.pipe.AppendEntries(args, &raft.AppendEntriesResponse{}); err != nil {
		t.Fatal(err)
	}
	b.wire.take()
}

// within returns the messages of the next d.
func (b *tellBench) within(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	return b.wire.take()
}

func (b *tellBench) wants(t *testing.T, d time.Duration, want ...string) {
	t.Helper()
	if got := b.within(d); !slices.Equal(got, want) {
		t.Errorf("sent in %s: %q, want %q", d, got, want)
	}
}

// A peer is told once, soon, that everything it was sent is committed, and nothing while
// nothing happens.
func TestPipeline_tellsOfACommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTellBench(t, Config{})
		b.wants(t, time.Second)
		b.send(t, 10, 6, 11, 12)
		b.wants(t, time.Second) // neither is committed
		b.leader.set(11, 7)
		b.wants(t, tellAfter, "term 7: 0 entries after 12 of term 7, committed 11")
		b.leader.set(12, 7)
		b.wants(t, tellAfter, "term 7: 0 entries after 12 of term 7, committed 12")
		b.wants(t, time.Minute)
	})
}

// Later messages report commits, too: under load none is sent for that alone.
func TestPipeline_tellsWithEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTellBench(t, Config{})
		for index := uint64(11); index < 1000; index++ {
			term := uint64(7)
			if index == 11 {
				term = 6
			}
			b.send(t, index-1, term, index)
			b.leader.set(index, 7)
			b.wants(t, tellAfter-time.Millisecond)
		}
		b.wants(t, time.Second, "term 7: 0 entries after 999 of term 7, committed 999")
	})
}

// A peer is not told of entries that it was not sent, or that are not on the leader's disk.
func TestPipeline_tellsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTellBench(t, Config{Stored: func(index uint64) uint64 { return min(index, 12) }})
		b.send(t, 10, 6, 11)
		b.leader.set(15, 7)
		b.wants(t, time.Second, "term 7: 0 entries after 11 of term 7, committed 11")
		b.send(t, 15, 7, 16)
		b.wants(t, time.Second)
	})
}

// A former leader learns from the next one which entries are committed instead of its entries.
// A peer that still has the old ones would take those for committed.
func TestPipeline_tellsNothingOfALaterTerm(t *testing.T) {
	t.Parallel()
	t.Run("it follows", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newTellBench(t, Config{})
			b.send(t, 10, 6, 11)
			b.leader.set(11, 8)
			b.wants(t, time.Minute)
		})
	})
	t.Run("it turns to the next term meanwhile", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newTellBench(t, Config{})
			b.send(t, 10, 6, 11)
			b.leader.mu.Lock()
			b.leader.committed = 11
			b.leader.looked = func(l *fakeLeader) { l.term = 8 }
			b.leader.mu.Unlock()
			b.wants(t, time.Minute)
		})
	})
}

// Close releases a message that waits to be sent, and nothing is sent after it.
func TestPipeline_closeWhileItTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTellBench(t, Config{})
		b.send(t, 10, 6, 11)
		b.leader.set(11, 7)
		b.wire.mu.Lock()
		b.wire.gate = make(chan struct{})
		b.wire.mu.Unlock()
		b.wants(t, tellAfter, "term 7: 0 entries after 11 of term 7, committed 11")
		if err := b.pipe.Close(); err != nil {
			t.Error(err)
		}
		b.wants(t, time.Minute)
	})
}

// failingWire fails the calls with entries while it is down.
type failingWire struct {
	raft.Transport
	mu    sync.Mutex
	down  bool
	calls int // with entries
}

var errDown = errors.New("down")

func (w *failingWire) set(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

func (w *failingWire) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !IsHeartbeat(args) {
		w.calls++
	}
	if w.down {
		return errDown
	}
	resp.Term, resp.Success = args.Term, true
	return nil
}

// Entries that a peer did not get are sent again as soon as it answers a heartbeat, while
// Raft would wait for its CommitTimeout; but only once, because the peer may be gone again.
func TestConfirmer_sendsAgain(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"it is back": true, "it is gone again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wire := &failingWire{down: true}
				c := New(wire, Config{Leads: func(uint64, raft.ServerID) bool { return true }})
				done := make(chan error, 1)
				var resp raft.AppendEntriesResponse
				go func() {
					done <- c.AppendEntries("b", "", &raft.AppendEntriesRequest{Term: 7, PrevLogEntry: 10, PrevLogTerm: 6}, &resp)
				}()
				synctest.Wait()
				wire.set(false)
				if err := c.AppendEntries("b", "", &raft.AppendEntriesRequest{Term: 7}, &raft.AppendEntriesResponse{}); err != nil {
					t.Fatal(err)
				}
				wire.set(!back)
				err := <-done
				if back && (err != nil || !resp.Success) || !back && !errors.Is(err, errDown) {
					t.Errorf("%v, %+v", err, resp)
				}
				if wire.calls != 2 {
					t.Errorf("sent %d times, want 2", wire.calls)
				}
			})
		})
	}
}
