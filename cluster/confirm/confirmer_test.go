package confirm

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// fakeWire answers AppendEntries with success in the sender's term when it is allowed to.
type fakeWire struct {
	raft.Transport
	mu   sync.Mutex
	gate map[raft.ServerID]chan struct{} // an answer waits until its gate is closed
	term uint64                          // in answers; 0 = the sender's
}

func (w *fakeWire) AppendEntries(id raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	w.mu.Lock()
	gate := w.gate[id]
	resp.Term, resp.Success = args.Term, true
	if w.term != 0 {
		resp.Term, resp.Success = w.term, false
	}
	w.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return nil
}

func (w *fakeWire) hold(ids ...raft.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = make(map[raft.ServerID]chan struct{})
	for _, id := range ids {
		w.gate[id] = make(chan struct{})
	}
}

func (w *fakeWire) release(id raft.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.gate[id])
	delete(w.gate, id)
}

// confirmTest is a leader in term 7 with peers b and c, and a nonvoter d.
type confirmTest struct {
	wire  *fakeWire
	c     *Confirmer
	scope *Scope
	self  bool
}

func newConfirmTest(t *testing.T) *confirmTest {
	x := &confirmTest{wire: &fakeWire{}, self: true}
	x.c = New(x.wire, Config{})
	x.scope = NewScope(7, func() ([]raft.ServerID, bool, bool) { return []raft.ServerID{"b", "c"}, x.self, true }, func() {})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.c.Serve(ctx, x.scope)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return x
}

// send sends a heartbeat to id in a goroutine; the channel is closed when it is answered.
func (x *confirmTest) send(id raft.ServerID, term uint64) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = x.c.AppendEntries(id, "", &raft.AppendEntriesRequest{Term: term}, &raft.AppendEntriesResponse{})
	}()
	synctest.Wait()
	return done
}

// confirmed reports whether an earlier read is confirmed by now.
func confirmed(read <-chan error) bool {
	synctest.Wait()
	select {
	case err := <-read:
		return err == nil
	default:
		return false
	}
}

func (x *confirmTest) read(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- x.c.Confirm(ctx, x.scope) }()
	synctest.Wait()
	return done
}

// A leader that was paused reads the answers to heartbeats sent long before, when others
// have a new leader. They confirm no read that arrived since.
func TestConfirmer_lateAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newConfirmTest(t)
		x.wire.hold("b", "c")
		toB, toC := x.send("b", 7), x.send("c", 7)
		read := x.read(t.Context())
		x.wire.release("b")
		x.wire.release("c")
		<-toB
		<-toC
		if confirmed(read) {
			t.Fatal("a read was confirmed by answers to messages sent before it arrived")
		}
		<-x.send("b", 7)
		if !confirmed(read) {
			t.Error("a read was not confirmed by a majority's answers to messages sent after it arrived")
		}
	})
}

func TestConfirmer_whoCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newConfirmTest(t)
		read := x.read(t.Context())
		<-x.send("d", 7) // no voter
		<-x.send("b", 6) // of an earlier term
		if confirmed(read) {
			t.Fatal("confirmed by a nonvoter, or in another term")
		}
		x.wire.mu.Lock()
		x.wire.term = 8
		x.wire.mu.Unlock()
		<-x.send("b", 7)
		<-x.send("c", 7)
		if confirmed(read) {
			t.Fatal("confirmed by refusals in a later term")
		}
		x.wire.mu.Lock()
		x.wire.term = 0
		x.wire.mu.Unlock()
		<-x.send("c", 7)
		if !confirmed(read) {
			t.Error("not confirmed by one of two other voters and ourselves")
		}
		x.self = false // we are no voter: both others are needed
		read = x.read(t.Context())
		<-x.send("c", 7)
		if confirmed(read) {
			t.Fatal("confirmed by one of two voters")
		}
		<-x.send("b", 7)
		if !confirmed(read) {
			t.Error("not confirmed by both voters")
		}
	})
}

func TestConfirmer_waitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newConfirmTest(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.c.Confirm(ctx, x.scope); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		x.c.mu.Lock()
		defer x.c.mu.Unlock()
		if len(x.scope.waiters) != 0 {
			t.Error("the wait was not taken off")
		}
	})
}

// A look whether this node still leads counts only for reads that arrived before it,
// because a vote may come in between.
func TestConfirmer_leadsAfterArrival(t *testing.T) {
	t.Parallel()
	c := New(&fakeWire{}, Config{})
	asked := false
	scope := &Scope{
		wake: make(chan struct{}, 1),
		voters: func() ([]raft.ServerID, bool, bool) {
			asked = true
			if c.mu.TryLock() {
				c.mu.Unlock()
				t.Error("a read can arrive between the look-up and its confirmation")
			}
			return nil, true, true
		},
	}
	c.release(scope)
	if !asked {
		t.Error("nobody looked up whether this node leads")
	}
}
