package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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

// submit submits count tasks of the type.
func (l *leading) submit(t *testing.T, taskType string, count int) {
	t.Helper()
	tasks := slices.Repeat([]fsm.NewTask{{Type: taskType, Params: []byte(`{}`)}}, count)
	if _, err := l.batcher.Propose(context.Background(), command.Submit{Tasks: tasks}); err != nil {
		t.Fatal(err)
	}
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
			w, err := set.admit(command.ClaimNext{WorkerID: "w", Types: []string{fmt.Sprint("type", i%100)}, Limit: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, w)
		}
		mail := make(chan error, 1)
		go func() {
			p, _, err := set.Wait(context.Background(), command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, LeaseMS: 1000}, time.Hour, nil)
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
	first, err := set.admit(long, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = set.admit(command.ClaimNext{WorkerID: "w2", Limit: 1, Types: []string{"mail"}}, nil); err != nil {
		t.Errorf("one with a single type: %v", err)
	}
	full := (*nodes.Overload)(nil)
	if _, err = set.admit(long, nil); err != nil {
		t.Errorf("the second with 1,000 types, of 1 MiB: %v", err)
	}
	if _, err = set.admit(long, nil); !errors.As(err, &full) || full.Bound != nodes.BoundWaitingClaims {
		t.Errorf("one that there is no room for: %v", err)
	}
	set.leave(first, true)
	if _, err = set.admit(long, nil); err != nil {
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
		_, err = l.waiters.admit(claim, nil)
	}
	const count = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range count {
		if _, err := l.waiters.admit(claim, nil); !errors.Is(err, nodes.ErrOverloaded) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > 10_000 {
		t.Errorf("a refused claim took %d bytes", each)
	}
}

// testRooms is room for some results.
type testRooms struct {
	free       chan struct{} // an element for each result that there is room for
	held, most atomic.Int32  // how many are taken now, and at most were
}

func newTestRooms(count int) *testRooms {
	r := &testRooms{free: make(chan struct{}, count)}
	for range count {
		r.free <- struct{}{}
	}
	return r
}

// take takes room for a result. It waits for a minute.
func (r *testRooms) take(ctx context.Context) (give func(), err error) {
	select {
	case <-r.free:
	case <-time.After(time.Minute):
		return nil, &nodes.Overload{Bound: nodes.BoundAnswers}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.most.Store(max(r.most.Load(), r.held.Add(1)))
	return r.give, nil
}

func (r *testRooms) give() {
	r.held.Add(-1)
	r.free <- struct{}{}
}

// TestWaiters_sameRequestTakesRoom ensures that waiting claims of one request are all answered once one is, and that
// there are no more of their results at a time than there is room for.
func TestWaiters_sameRequestTakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := startLeading(t)
		rooms := newTestRooms(3)
		claim := command.ClaimNext{WorkerID: "w", Types: []string{"mail"}, Limit: 1000, LeaseMS: 1000, RequestID: "r"}
		var claims sync.WaitGroup
		for range 50 {
			claims.Go(func() {
				p, timedOut, err := l.waiters.Wait(context.Background(), claim, time.Hour, rooms.take)
				if err != nil || timedOut || len(p.Result.Claims) != 10 {
					t.Errorf("%d tasks, %v, %v", len(p.Result.Claims), timedOut, err)
				}
				<-time.After(time.Second) // until the answer is written
				rooms.give()
			})
		}
		synctest.Wait()
		if held := rooms.held.Load(); held != 0 {
			t.Errorf("%d that wait hold room", held)
		}
		l.submit(t, "mail", 10)
		claims.Wait()
		if rooms.most.Load() != 3 || rooms.held.Load() != 0 {
			t.Errorf("there were %d results at a time, and room for 3; %d are held", rooms.most.Load(), rooms.held.Load())
		}
	})
}

// TestWaiters_withoutRoom ensures that a claim which gets no room in time, or whose caller goes meanwhile, takes
// nothing, and that the next one is promised what it was.
func TestWaiters_withoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := startLeading(t)
		none, caller, gone := newTestRooms(0), make([]context.Context, 2), errors.New("gone")
		var leave context.CancelCauseFunc
		caller[0] = context.Background()
		caller[1], leave = context.WithCancelCause(context.Background())
		ends := make([]chan error, 3)
		for i := range ends {
			ends[i] = make(chan error, 1)
			claim := command.ClaimNext{WorkerID: fmt.Sprint("w", i), Types: []string{"mail"}, Limit: 1000, LeaseMS: 1000}
			go func() {
				if i == 2 {
					p, _, err := l.waiters.Wait(context.Background(), claim, time.Hour, newTestRooms(1).take)
					if len(p.Result.Claims) != 1 {
						err = fmt.Errorf("%d tasks, %w", len(p.Result.Claims), err)
					}
					ends[i] <- err
					return
				}
				_, _, err := l.waiters.Wait(caller[i], claim, time.Hour, none.take)
				ends[i] <- err
			}()
			synctest.Wait()
		}
		l.submit(t, "mail", 1)
		if err := <-ends[0]; !errors.Is(err, nodes.ErrOverloaded) {
			t.Errorf("without room: %v", err)
		}
		synctest.Wait()
		leave(gone)
		if err := <-ends[1]; !errors.Is(err, gone) {
			t.Errorf("without a caller: %v", err)
		}
		if err := <-ends[2]; err != nil {
			t.Errorf("the next one: %v", err)
		}
		if l.waiters.Len() != 0 || len(l.waiters.promised) != 0 {
			t.Errorf("%d wait, and %v is promised", l.waiters.Len(), l.waiters.promised)
		}
	})
}

// TestWaiters_givesRoomBack ensures that a claim which was promised tasks that others took goes on waiting without
// room, and takes it again.
func TestWaiters_givesRoomBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := startLeading(t)
		rooms := newTestRooms(1)
		if _, err := rooms.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() {
			p, _, err := l.waiters.Wait(context.Background(), command.ClaimNext{WorkerID: "w", Limit: 1000, LeaseMS: 1000}, time.Hour, rooms.take)
			if len(p.Result.Claims) != 1 {
				err = fmt.Errorf("%d tasks, %w", len(p.Result.Claims), err)
			}
			end <- err
		}()
		synctest.Wait()
		l.submit(t, "mail", 1)
		if _, err := l.batcher.Propose(t.Context(), command.ClaimNext{WorkerID: "other", Limit: 1}); err != nil {
			t.Fatal(err)
		}
		rooms.give()
		synctest.Wait()
		if held := rooms.held.Load(); held != 0 || l.waiters.Len() != 1 {
			t.Errorf("%d results hold room, %d claims wait", held, l.waiters.Len())
		}
		l.submit(t, "mail", 1)
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}
