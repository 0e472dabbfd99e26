package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// testQueueMax bounds the commands that wait in the tests.
const testQueueMax = 16_384

// fakeRaft accepts entries, and answers them when it is told to.
type fakeRaft struct {
	mu      sync.Mutex
	entries [][]command.Command
	sizes   []int
	answer  chan error // one element for each entry
}

type fakeFuture struct {
	err     error
	applied *fsm.Applied
}

func (f fakeFuture) Error() error  { return f.err }
func (f fakeFuture) Response() any { return f.applied }

func (r *fakeRaft) apply(data []byte) Future {
	_, commands, err := command.DecodeEntry(data)
	if err != nil {
		return fakeFuture{err: err}
	}
	r.mu.Lock()
	r.entries = append(r.entries, commands)
	r.sizes = append(r.sizes, len(data))
	index := uint64(len(r.entries))
	r.mu.Unlock()
	if err := <-r.answer; err != nil {
		return fakeFuture{err: err}
	}
	applied := &fsm.Applied{Index: index}
	for i := range commands {
		// Each caller must get its own.
		applied.Results = append(applied.Results, fsm.Result{Code: fsm.Code(describe(commands[i]))})
	}
	return fakeFuture{applied: applied}
}

func describe(c command.Command) string {
	switch c := c.(type) {
	case command.Submit:
		return "submit " + c.Tasks[0].Key
	case command.Extend:
		return "extend " + c.WorkerID
	case command.ClaimNext:
		return "claim " + c.WorkerID
	}
	return fmt.Sprintf("%T", c)
}

var errClosedGate = errors.New("closed")

func newTestBatcher(t *testing.T) (*Batcher, *fakeRaft) {
	t.Helper()
	r := &fakeRaft{answer: make(chan error, 10_000)}
	b := New(Config{Apply: r.apply, Refuse: func() error { return errClosedGate }, QueueMax: testQueueMax})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		b.Run(stop)
	}()
	t.Cleanup(func() {
		close(r.answer)
		close(stop)
		<-stopped
	})
	b.Open(GateOpen, func() fsm.Stamp { return fsm.Stamp{U: 1, T: 2} })
	return b, r
}

// proposeAll proposes commands at once, in order, and returns their results.
func proposeAll(b *Batcher, ctx context.Context, commands ...command.Command) []<-chan error {
	var ends []<-chan error
	for _, c := range commands {
		end := make(chan error, 1)
		go func() {
			p, err := b.Propose(ctx, c)
			if err == nil && string(p.Result.Code) != describe(c) {
				err = fmt.Errorf("got the result of %q for %q", p.Result.Code, describe(c))
			}
			end <- err
		}()
		synctest.Wait()
		ends = append(ends, end)
	}
	return ends
}

func submitOf(key string, size int) command.Submit {
	return command.Submit{Tasks: []fsm.NewTask{{Type: "t", Key: key, Payload: make([]byte, size)}}}
}

func extendOf(worker string) command.Extend {
	return command.Extend{Hold: command.Hold{ID: 1, WorkerID: worker}}
}

func (r *fakeRaft) described() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all [][]string
	for _, e := range r.entries {
		var one []string
		for _, c := range e {
			one = append(one, describe(c))
		}
		all = append(all, one)
	}
	return all
}

// Commands that queue up while an entry is in flight become one entry: lanes in order, an
// expiry after every settle, and each caller gets its own result.
func TestBatcher_packsByLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		ends := proposeAll(b, t.Context(), submitOf("first", 1))
		ends = append(ends, proposeAll(b, t.Context(),
			submitOf("a", 1), command.ClaimNext{WorkerID: "w", Limit: 1}, command.Expire{Items: []command.Lease{{TaskID: 1, Token: 1, Seq: 1}}},
			extendOf("x"), submitOf("b", 1), extendOf("y"), command.Tick{})...)
		r.answer <- nil
		r.answer <- nil
		for i, end := range ends {
			if err := <-end; err != nil {
				t.Errorf("command %d: %v", i, err)
			}
		}
		want := "[[submit first] [command.Tick extend x extend y command.Expire claim w submit a submit b]]"
		if got := fmt.Sprint(r.described()); got != want {
			t.Errorf("entries %s\nwant    %s", got, want)
		}
	})
}

// An expiry waits for extends received before it, even if they do not fit into the entry.
func TestBatcher_expireNeverOvertakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		var commands []command.Command
		for i := range entryCommandsMax + 10 {
			commands = append(commands, extendOf(fmt.Sprint(i)))
		}
		commands = append(commands, command.Expire{Items: []command.Lease{{TaskID: 1, Token: 1, Seq: 1}}}, submitOf("z", 1))
		ends := proposeAll(b, t.Context(), append([]command.Command{submitOf("first", 1)}, commands...)...)
		for range 3 {
			r.answer <- nil
		}
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		entries := r.described()
		last := entries[len(entries)-1]
		if len(entries) != 3 || last[len(last)-1] != "command.Expire" {
			t.Errorf("%d entries, the last %v; want the expiry at the end of the third", len(entries), last)
		}
	})
}

// A full lane leaves room for the others, and a large command neither starves nor blocks
// the rest.
func TestBatcher_noLaneStarves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		ends := proposeAll(b, t.Context(), submitOf("first", 1))
		for i := range 3 * entryCommandsMax {
			ends = append(ends, proposeAll(b, t.Context(), extendOf(fmt.Sprint(i)))...)
		}
		ends = append(ends, proposeAll(b, t.Context(), submitOf("large", 2<<20), submitOf("large too", 2<<20), submitOf("small", 1),
			command.ClaimNext{WorkerID: "w", Limit: 1})...)
		for range 100 {
			r.answer <- nil
		}
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		for i, e := range r.described() {
			for _, c := range e {
				switch {
				case c == "claim w" && i > 2, c == "submit large" && i > 1, c == "submit large too" && i > 3, c == "submit small" && i > 4:
					t.Errorf("%q came in entry %d", c, i)
				}
			}
			if size := r.sizes[i]; size > entryBytesMax && len(e) > 1 {
				t.Errorf("entry %d has %d commands in %d bytes", i, len(e), size)
			}
			if len(e) > entryCommandsMax {
				t.Errorf("entry %d has %d commands", i, len(e))
			}
		}
	})
}

func TestBatcher_bounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		if _, err := b.Propose(t.Context(), submitOf("", commandBytesMax)); !errors.Is(err, nodes.ErrTooLarge) {
			t.Errorf("over 9 MiB: %v, want ErrTooLarge", err)
		}
		many := command.Submit{Tasks: make([]fsm.NewTask, entryTasksMax+1)}
		if _, err := b.Propose(t.Context(), many); !errors.Is(err, nodes.ErrTooLarge) {
			t.Errorf("over 10,000 tasks: %v, want ErrTooLarge", err)
		}
		ends := proposeAll(b, t.Context(), submitOf("first", 1))
		for i := range 6 {
			ends = append(ends, proposeAll(b, t.Context(), submitOf(fmt.Sprint(i), 8<<20-100))...)
		}
		if _, err := b.Propose(t.Context(), submitOf("over", 4<<10)); fullOf(err) != nodes.BoundInFlight {
			t.Errorf("no more submits: %v, want it named", err)
		}
		// The rest is for commands whose refusal would cost a lease.
		for range 2 {
			ends = append(ends, proposeAll(b, t.Context(), extendOf(strings.Repeat("w", 8<<20-100)))...)
		}
		if _, err := b.Propose(t.Context(), extendOf(strings.Repeat("w", 4<<10))); fullOf(err) != nodes.BoundInFlight {
			t.Errorf("a full queue: %v, want it named", err)
		}
		for range len(ends) {
			r.answer <- nil
		}
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		if b.count != 0 || b.bytes != 0 {
			t.Errorf("an empty queue counts %d commands, %d bytes", b.count, b.bytes)
		}
	})
}

// fullOf returns the bound that was reached according to err, "" for none.
func fullOf(err error) nodes.Bound {
	var over *nodes.Overload
	if !errors.As(err, &over) {
		return ""
	}
	return over.Bound
}

// Submits leave the last quarter of the queue to other commands, even if it is small.
func TestBatcher_leavesRoomForSettles(t *testing.T) {
	t.Parallel()
	for queueMax, submits := range map[int]int{1: 1, 2: 1, 4: 3, 100: 75} {
		b := New(Config{QueueMax: queueMax})
		b.Open(GateOpen, nil)
		for i := range submits {
			if err := b.enqueue(&pending{lane: command.LaneSubmit}); err != nil {
				t.Errorf("submit %d of %d: %v", i, queueMax, err)
			}
		}
		if err := b.enqueue(&pending{lane: command.LaneSubmit}); fullOf(err) != nodes.BoundInFlight {
			t.Errorf("submit %d of %d: %v", submits, queueMax, err)
		}
		for i := submits; i < queueMax; i++ {
			if err := b.enqueue(&pending{lane: command.LaneClaim}); err != nil {
				t.Errorf("claim %d of %d: %v", i, queueMax, err)
			}
		}
		if err := b.enqueue(&pending{lane: command.LaneSettle}); fullOf(err) != nodes.BoundInFlight {
			t.Errorf("over %d: %v", queueMax, err)
		}
		if err := b.enqueue(&pending{lane: command.LaneInternal}); err != nil {
			t.Errorf("the leader's own: %v", err)
		}
	}
}

// Waiting claims that are all proposed at once leave room for others, because a refused
// extend could cost a lease.
func TestBatcher_waitersTakeNoRoom(t *testing.T) {
	t.Parallel()
	b := New(Config{QueueMax: testQueueMax})
	b.Open(GateOpen, nil)
	for range testQueueMax {
		if err := b.enqueueWaiting(&pending{lane: command.LaneClaim, waiter: &waiter{}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range testQueueMax {
		if err := b.enqueue(&pending{lane: command.LaneSettle}); err != nil {
			t.Fatalf("%d others are queued: %v", i, err)
		}
	}
	if err := b.enqueue(&pending{lane: command.LaneSettle}); !errors.Is(err, nodes.ErrOverloaded) {
		t.Errorf("the queue is full of others: %v, want ErrOverloaded", err)
	}
	for b.count > 0 {
		b.packLocked()
	}
	if b.waiting != 0 || b.bytes != 0 {
		t.Errorf("an empty queue counts %d waiters, %d bytes", b.waiting, b.bytes)
	}
}

// Errors of Raft for an entry, and the resulting ones for callers.
func TestBatcher_errors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raft, want error
	}{
		{raft.ErrNotLeader, nodes.ErrNotLeader},
		{raft.ErrLeadershipTransferInProgress, nodes.ErrNotLeader},
		{raft.ErrAbortedByRestore, nodes.ErrOutcomeUnknown},
		{raft.ErrEnqueueTimeout, nodes.ErrOverloaded},
		{raft.ErrLeadershipLost, nodes.ErrOutcomeUnknown},
		{raft.ErrRaftShutdown, nodes.ErrOutcomeUnknown},
		{errors.New("disk"), nodes.ErrOutcomeUnknown},
	} {
		t.Run(c.raft.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, r := newTestBatcher(t)
				r.answer <- nil
				ends := proposeAll(b, t.Context(), submitOf("fine", 1))
				ends = append(ends, proposeAll(b, t.Context(), submitOf("a", 1))...)
				ends = append(ends, proposeAll(b, t.Context(), submitOf("b", 1), extendOf("c"))...)
				r.answer <- c.raft // a
				r.answer <- c.raft // b, c
				if err := <-ends[0]; err != nil {
					t.Error(err)
				}
				for _, end := range ends[1:] {
					if err := <-end; !errors.Is(err, c.want) {
						t.Errorf("got %v, want %v", err, c.want)
					}
				}
			})
		})
	}
}

// A future that hangs makes the outcome unknown, and the next entry goes on.
func TestBatcher_hangingFuture(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		start := time.Now()
		ends := proposeAll(b, t.Context(), submitOf("a", 1))
		if err := <-ends[0]; !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Errorf("got %v, want ErrOutcomeUnknown", err)
		}
		if waited := time.Since(start); waited != OutcomeTimeout {
			t.Errorf("waited %s, want %s", waited, OutcomeTimeout)
		}
		r.answer <- nil // of the first entry: too late
		r.answer <- nil
		if err := <-proposeAll(b, t.Context(), submitOf("b", 1))[0]; err != nil {
			t.Error(err)
		}
	})
}

// A caller that goes before its command is in an entry has written nothing; after that, the
// outcome is unknown.
func TestBatcher_callerGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		ctx, cancel := context.WithCancel(t.Context())
		ends := proposeAll(b, ctx, submitOf("taken", 1), submitOf("queued", 1))
		cancel()
		if err := <-ends[0]; !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Errorf("taken: %v, want ErrOutcomeUnknown", err)
		}
		if err := <-ends[1]; !errors.Is(err, nodes.ErrOverloaded) {
			t.Errorf("queued: %v, want ErrOverloaded", err)
		}
		end := proposeAll(b, t.Context(), submitOf("next", 1))[0]
		r.answer <- nil
		r.answer <- nil
		if err := <-end; err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(r.described()); got != "[[submit taken] [submit next]]" {
			t.Errorf("entries %s", got)
		}
	})
}

// TestBatcher_abandonedHoldNothing ensures that commands whose callers have gone, while the log takes nothing, hold no
// memory: others are queued in their place, again and again.
func TestBatcher_abandonedHoldNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		ends := proposeAll(b, t.Context(), submitOf("in flight", 1), submitOf("stays", 1))
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			gone := proposeAll(b, ctx, submitOf("a", 100_000), submitOf("b", 100_000), submitOf("c", 100_000))
			cancel()
			for _, end := range gone {
				if err := <-end; !errors.Is(err, nodes.ErrOverloaded) {
					t.Errorf("gone: %v", err)
				}
			}
		}
		b.mu.Lock()
		held := 0
		for _, p := range b.lanes[command.LaneSubmit].left() {
			held += cap(p.buf)
		}
		if n := len(b.lanes[command.LaneSubmit].left()); held > 1_000 || n > 3 || b.count != 1 {
			t.Errorf("%d bytes in %d commands are held for %d", held, n, b.count)
		}
		b.mu.Unlock()
		r.answer <- nil
		r.answer <- nil
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(r.described()); got != "[[submit in flight] [submit stays]]" {
			t.Errorf("entries %s", got)
		}
	})
}

// Closing refuses queued commands, answers those in flight, and accepts no new ones.
func TestBatcher_close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		ends := proposeAll(b, t.Context(), submitOf("taken", 1), submitOf("queued", 1))
		gone := errors.New("gone")
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			b.Close(gone)
		}()
		if err := <-ends[1]; !errors.Is(err, gone) {
			t.Errorf("queued: %v, want %v", err, gone)
		}
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while an entry was in flight")
		default:
		}
		r.answer <- nil
		if err := <-ends[0]; err != nil {
			t.Errorf("in flight: %v", err)
		}
		<-closed
		if _, err := b.Propose(t.Context(), submitOf("late", 1)); !errors.Is(err, errClosedGate) {
			t.Errorf("after close: %v", err)
		}
		b.Open(GateInternal, func() fsm.Stamp { return fsm.Stamp{} })
		for _, early := range []command.Command{submitOf("early", 1), command.Tell{}, command.SetJoinToken{}} {
			if _, err := b.Propose(t.Context(), early); !errors.Is(err, errClosedGate) {
				t.Errorf("%T before the leader serves: %v", early, err)
			}
		}
		r.answer <- nil
		if _, err := b.ProposeOwn(t.Context(), command.Tick{}); err != nil {
			t.Errorf("the leader's own: %v", err)
		}
	})
}

// A batcher that has stopped still answers, so that a leadership that began late does not
// wait for it.
func TestBatcher_stopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{Refuse: func() error { return errClosedGate }})
		stop := make(chan struct{})
		close(stop)
		b.Run(stop)
		b.Open(GateInternal, func() fsm.Stamp { return fsm.Stamp{} })
		if _, err := b.ProposeOwn(t.Context(), command.Tick{}); !errors.Is(err, errClosedGate) {
			t.Errorf("after the stop: %v, want %v", err, errClosedGate)
		}
	})
}

// Each command goes to its lane, with the tasks that it may change.
func TestBatcher_lanes(t *testing.T) {
	t.Parallel()
	one := []fsm.NewTask{{Type: "t"}}
	ten := &command.ClaimNext{Limit: 10}
	parent := []fsm.NewTask{{Type: "t", Parent: &fsm.NewParent{Steps: make([]fsm.NewStep, 2)}}}
	for _, c := range []struct {
		command command.Command
		lane    command.Lane
		tasks   int
	}{
		{command.Submit{Tasks: make([]fsm.NewTask, 7)}, command.LaneSubmit, 7},
		{command.ClaimNext{Limit: 9}, command.LaneClaim, 9},
		{command.ClaimTask{}, command.LaneClaim, 1},
		{command.Complete{}, command.LaneSettle, 1},
		{command.Complete{Submit: make([]fsm.NewTask, 3), Claim: ten}, command.LaneSettle, 14},
		{command.Cancel{}, command.LaneSettle, 1},
		{command.Patch{}, command.LaneSettle, 1},
		{command.Submit{Tasks: parent}, command.LaneSubmit, 3},
		{command.Complete{Submit: parent}, command.LaneSettle, 4},
		{command.ClaimFinalization{}, command.LaneSettle, 1},
		{command.ExtendFinalization{}, command.LaneSettle, 1},
		{command.ReleaseFinalization{}, command.LaneSettle, 1},
		{command.Finalize{}, command.LaneSettle, 1},
		{command.SetType{}, command.LaneSettle, 0},
		{command.SetSchedule{}, command.LaneSettle, 0},
		{command.DeleteSchedule{}, command.LaneSettle, 0},
		{command.Act{IDs: make([]uint64, 8)}, command.LaneSettle, 8},
		{command.RunSchedules{Items: make([]command.ScheduleRun, 6)}, command.LaneInternal, 6},
		{command.Batch{Ops: []command.Command{command.Submit{Tasks: one}, *ten, command.Complete{Submit: one}, command.Delete{}}}, command.LaneSettle, 14},
		{command.Expire{Items: make([]command.Lease, 5)}, command.LaneExpire, 5},
		{command.Evict{}, command.LaneInternal, 0},
		{command.Tick{}, command.LaneInternal, 0},
	} {
		if lane, tasks := laneOf(c.command); lane != c.lane || tasks != c.tasks {
			t.Errorf("%T: lane %d, %d tasks; want lane %d, %d", c.command, lane, tasks, c.lane, c.tasks)
		}
	}
}

// The number of tasks that a command may change counts, but is no reason to refuse it: it
// gets a separate entry.
func TestBatcher_reach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := newTestBatcher(t)
		asked := 0
		b.cfg.Reach = func(command.Command) int { asked++; return entryTasksMax * 3 }
		ends := proposeAll(b, t.Context(), submitOf("first", 1))
		synctest.Wait()
		reaching := []command.Command{command.Fail{}, command.Release{}, command.Cancel{}, command.Retry{}, command.Delete{}, command.Batch{Ops: []command.Command{command.Extend{}}}}
		for _, cmd := range append(reaching, command.Complete{}, command.Extend{}) {
			ends = append(ends, proposeAll(b, t.Context(), cmd)...)
		}
		synctest.Wait()
		for range 2 + len(reaching) {
			r.answer <- nil
		}
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		if asked != len(reaching) || len(r.sizes) != 2+len(reaching) {
			t.Errorf("%d commands asked, %d entries; want %d and %d", asked, len(r.sizes), len(reaching), 2+len(reaching))
		}
	})
}
