package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// leading is a state with a batcher and waiters, without a node.
type leading struct {
	mu      sync.RWMutex // guards the state
	m       *fsm.Machine
	index   uint64
	batcher *Batcher
	waiters *Waiters
	looks   atomic.Int32 // checks whether something is claimable
}

// startLeading starts a state that leads until the test ends.
func startLeading(t *testing.T) *leading {
	t.Helper()
	l := &leading{m: fsm.New()}
	l.batcher = New(Config{Apply: l.apply, Refuse: func() error { return errClosedGate }, Waiters: func() *Waiters { return l.waiters }, QueueMax: testQueueMax})
	l.waiters = NewWaiters(WaitersConfig{Batcher: l.batcher, Read: l.read, Claimable: l.claimable, Woken: func(int) {}, Max: 20_000, MaxBytes: 20 << 20})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		l.batcher.Run(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	l.batcher.Open(GateOpen, l.now)
	return l
}

func (l *leading) now() fsm.Stamp { return fsm.Stamp{U: 1, T: 2} }

func (l *leading) read(see func(*fsm.Machine)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	see(l.m)
}

func (l *leading) claimable(m *fsm.Machine, c command.ClaimNext) bool {
	l.looks.Add(1)
	return m.Claimable(c, l.now())
}

func (l *leading) apply(entry []byte) Future {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	applied, err := l.m.Apply(l.index, entry)
	l.waiters.NoteReady(applied.Ready)
	return fakeFuture{err: err, applied: &applied}
}

// A waiter for other types costs nothing and is not woken.
func TestWaiters_othersAreNotLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := startLeading(t)
		set := l.waiters
		var others []*waiter
		for i := range 10_000 {
			w, err := set.admit(command.ClaimNext{WorkerID: "w", Types: []string{fmt.Sprint("type", i%100)}, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, w)
		}
		mail := make(chan error, 1)
		go func() {
			p, _, err := set.Wait(context.Background(), command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, LeaseMS: 1000}, time.Hour)
			if err == nil && len(p.Result.Claims) != 1 {
				err = fmt.Errorf("%d tasks", len(p.Result.Claims))
			}
			mail <- err
		}()
		synctest.Wait()
		l.looks.Store(0)
		if _, err := l.batcher.Propose(context.Background(), command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`{}`)}}}); err != nil {
			t.Fatal(err)
		}
		if err := <-mail; err != nil {
			t.Fatalf("the claim got nothing: %v", err)
		}
		synctest.Wait()
		if looks := l.looks.Load(); looks > 8 {
			t.Errorf("%d looks at the state for one task", looks)
		}
		if got := set.Len(); got != len(others) {
			t.Errorf("%d wait, want %d", got, len(others))
		}
		for _, w := range others {
			if !set.leave(w, true) {
				t.Fatal("a claim of another type was woken")
			}
		}
		if len(set.queues) != 0 || set.Len() != 0 {
			t.Errorf("%d queues and %d claims are left", len(set.queues), set.Len())
		}
	})
}

// TestWaiters_ByteBound ensures that claims count with the types that they list, until their
// wait is over.
func TestWaiters_ByteBound(t *testing.T) {
	t.Parallel()
	set := NewWaiters(WaitersConfig{
		Batcher: New(Config{QueueMax: testQueueMax}), Read: func(fn func(*fsm.Machine)) { fn(fsm.New()) },
		Claimable: func(*fsm.Machine, command.ClaimNext) bool { return false }, Woken: func(int) {}, Max: 10, MaxBytes: 5 << 18,
	})
	long := command.ClaimNext{WorkerID: "w1", Limit: 1}
	for i := range 1_000 {
		long.Types = append(long.Types, fmt.Sprintf("type-%04d", i))
	}
	first, err := set.admit(long)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = set.admit(command.ClaimNext{WorkerID: "w2", Limit: 1, Types: []string{"mail"}}); err != nil {
		t.Errorf("one with a single type: %v", err)
	}
	full := (*nodes.Overload)(nil)
	if _, err = set.admit(long); err != nil {
		t.Errorf("the second with 1,000 types, of 1 MiB: %v", err)
	}
	if _, err = set.admit(long); !errors.As(err, &full) || full.Bound != nodes.BoundWaitingClaims {
		t.Errorf("one that there is no room for: %v", err)
	}
	set.leave(first, true)
	if _, err = set.admit(long); err != nil {
		t.Errorf("after one has left: %v", err)
	}
	set.End(errors.New("over"))
	if set.bytes != 0 || set.count != 0 {
		t.Errorf("at the end there are %d claims of %d bytes", set.count, set.bytes)
	}
}

// TestWaiters_RefusedAtOnce ensures that a claim that is refused for lack of room has not used
// any: its command, with all its types, is only made afterwards. It is not parallel, because it
// measures the process's allocations.
func TestWaiters_RefusedAtOnce(t *testing.T) {
	l := startLeading(t)
	claim := command.ClaimNext{WorkerID: "w", Limit: 1}
	for i := range 1000 {
		claim.Types = append(claim.Types, fmt.Sprintf("%0100d", i))
	}
	var err error
	for err == nil {
		_, err = l.waiters.admit(claim)
	}
	const count = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range count {
		if _, err := l.waiters.admit(claim); !errors.Is(err, nodes.ErrOverloaded) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > 10_000 {
		t.Errorf("a refused claim took %d bytes", each)
	}
}
