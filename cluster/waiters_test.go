package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// held stops entries before they are applied.
type held struct {
	mu     sync.Mutex
	before func(n *Node, stamp fsm.Stamp, commands []command.Command) // nil: nothing
}

func (h *held) set(before func(*Node, fsm.Stamp, []command.Command)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = before
}

// newHeldNode starts a node without Raft that calls h before each entry.
func newHeldNode(t *testing.T, change ...func(*Config)) (*Node, *held) {
	t.Helper()
	h := &held{}
	n := newMemoryNode(t, func(n *Node, entry []byte) batch.Future {
		stamp, commands, err := command.DecodeEntry(entry)
		if err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		before := h.before
		h.mu.Unlock()
		if before != nil {
			before(n, stamp, commands)
		}
		return n.applyEntry(entry)
	}, change...)
	return n, h
}

func submitMail(count int) command.Submit {
	var s command.Submit
	for range count {
		s.Tasks = append(s.Tasks, fsm.NewTask{Type: "mail", Params: []byte(`{}`), MaxAttempts: 3})
	}
	return s
}

// claimer is a claim in a separate goroutine.
type claimer struct {
	claim command.ClaimNext
	p     nodes.Proposed
	err   error
	done  chan struct{}
	gone  context.CancelFunc
}

func startWaiting(n *Node, c command.ClaimNext, wait time.Duration) *claimer {
	w := &claimer{claim: c, done: make(chan struct{})}
	var ctx context.Context
	ctx, w.gone = context.WithCancel(context.Background())
	go func() {
		defer close(w.done)
		w.p, w.err = n.Claim(ctx, c, wait, nil)
	}()
	synctest.Wait()
	return w
}

func (w *claimer) finished() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func mailFor(worker string) command.ClaimNext {
	return command.ClaimNext{WorkerID: worker, Types: []string{"mail"}, Limit: 1, LeaseMS: 3_600_000}
}

// A woken claim that finds its task taken keeps its place before later ones.
func TestWaiters_keepTheirPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, h := newHeldNode(t)
		first := startWaiting(n, mailFor("w1"), time.Hour)
		second := startWaiting(n, mailFor("w2"), time.Hour)
		h.set(func(n *Node, stamp fsm.Stamp, commands []command.Command) {
			if c, ok := commands[0].(command.ClaimNext); ok && c.WorkerID == "w1" {
				h.set(nil)
				n.applyEntry(command.AppendEntry(nil, stamp, mailFor("thief")))
			}
		})
		mustPropose(t, n, submitMail(1))
		if first.finished() || second.finished() {
			t.Fatal("a claim was answered without a task")
		}
		mustPropose(t, n, submitMail(1))
		if !first.finished() || second.finished() {
			t.Errorf("first has a task: %v, second: %v", first.finished(), second.finished())
		}
		mustPropose(t, n, submitMail(1))
		if !second.finished() {
			t.Error("the second claim was forgotten")
		}
	})
}

// A task that becomes claimable in the same entry in which a woken claim finds nothing is
// for that claim.
func TestWaiters_keepTheirPlaceInOneEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, h := newHeldNode(t)
		first := startWaiting(n, mailFor("w1"), time.Hour)
		second := startWaiting(n, mailFor("w2"), time.Hour)
		h.set(func(n *Node, stamp fsm.Stamp, commands []command.Command) {
			if c, ok := commands[0].(command.ClaimNext); ok && c.WorkerID == "w1" {
				h.set(nil)
				n.applyEntry(command.AppendEntry(nil, stamp, mailFor("thief")))
				// As if it were after the claim in the same entry.
				go func() { mustPropose(t, n, submitMail(1)) }()
			}
		})
		mustPropose(t, n, submitMail(1))
		if !first.finished() || second.finished() {
			t.Errorf("first has a task: %v, second: %v", first.finished(), second.finished())
		}
	})
}

// A claim whose caller goes while it is queued takes nothing; one that is in an entry is
// answered all the same.
func TestWaiters_callerGoesWhileProposed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, h := newHeldNode(t)
		mustPropose(t, n, submitMail(1))
		goOn := make(chan struct{})
		h.set(func(*Node, fsm.Stamp, []command.Command) { <-goOn })
		var holding sync.WaitGroup
		holding.Go(func() { mustPropose(t, n, submitMail(1)) })
		defer holding.Wait()
		letAll := sync.OnceFunc(func() { close(goOn) })
		defer letAll()
		synctest.Wait()
		queued := startWaiting(n, mailFor("w1"), time.Hour)
		queued.gone()
		if !queued.finished() || !errors.Is(queued.err, context.Canceled) {
			t.Fatalf("a claim in the queue whose caller has gone: %v, %v", queued.finished(), queued.err)
		}
		goOn <- struct{}{}
		synctest.Wait()
		if claims := int64(n.fsm.Claims()); claims != 0 {
			t.Fatalf("it took %d tasks", claims)
		}
		taken := startWaiting(n, mailFor("w2"), time.Hour)
		taken.gone()
		if taken.finished() {
			t.Fatal("a claim in an entry whose caller has gone was given up")
		}
		letAll()
		if !taken.finished() || taken.err != nil || len(taken.p.Result.Claims) != 1 {
			t.Errorf("a claim in an entry whose caller has gone: %v, %v", taken.p.Result.Claims, taken.err)
		}
	})
}

// The number of waiting claims is bounded.
func TestWaiters_bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, _ := newHeldNode(t, func(c *Config) { c.WaitingClaimsMax = 1 })
		last := startWaiting(n, mailFor("w1"), time.Minute)
		if last.finished() {
			t.Fatalf("below the bound: %v", last.err)
		}
		var over *nodes.Overload
		if _, err := n.Claim(context.Background(), mailFor("w2"), time.Minute, nil); !errors.As(err, &over) || over.Bound != nodes.BoundWaitingClaims {
			t.Errorf("at the bound: %v, want it named", err)
		}
		<-last.done
	})
}

// A new waiter does not overtake earlier ones, however it races with their waking.
func TestWaiters_newcomerWaitsItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, h := newHeldNode(t)
		first := startWaiting(n, mailFor("w1"), time.Hour)
		second := startWaiting(n, mailFor("w2"), time.Hour)
		goOn := make(chan struct{})
		h.set(func(_ *Node, _ fsm.Stamp, commands []command.Command) {
			if _, ok := commands[0].(command.ClaimNext); ok {
				<-goOn
			}
		})
		mustPropose(t, n, submitMail(1)) // first is under way
		third := startWaiting(n, mailFor("w3"), time.Hour)
		close(goOn)
		if !first.finished() || second.finished() || third.finished() {
			t.Errorf("finished: %v, %v, %v", first.finished(), second.finished(), third.finished())
		}
		var wakes dto.Metric
		if err := n.stats.fsm.wakes.Write(&wakes); err != nil || wakes.GetCounter().GetValue() != 1 {
			t.Errorf("%v claims were tried for one task, %v", wakes.GetCounter().GetValue(), err)
		}
	})
}

// A claim of any type that needs more attempts than any task has is not woken: it would be
// tried forever.
func TestWaiters_takeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, _ := newHeldNode(t)
		picky := startWaiting(n, command.ClaimNext{WorkerID: "w1", MoreAttempts: 900, Limit: 1}, time.Minute)
		any := startWaiting(n, command.ClaimNext{WorkerID: "w2", Limit: 1}, time.Minute)
		mustPropose(t, n, submitMail(2))
		synctest.Wait()
		index := n.fsm.AppliedIndex()
		if !any.finished() || picky.finished() {
			t.Errorf("any has a task: %v, picky: %v", any.finished(), picky.finished())
		}
		mustPropose(t, n, submitMail(1))
		<-time.After(time.Second)
		if now := n.fsm.AppliedIndex(); now != index+1 {
			t.Errorf("entries %d to %d were written for a claim that takes nothing", index+2, now)
		}
		<-picky.done
	})
}

// The tasks promised to a claim that is withdrawn before it is in an entry are promised to
// the next.
func TestWaiters_takenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, h := newHeldNode(t)
		const count = 1024 + 10 // they do not fit into one entry
		var all []*claimer
		for range count + 1 {
			all = append(all, startWaiting(n, mailFor("w"), time.Hour))
		}
		goOn := make(chan struct{})
		h.set(func(_ *Node, _ fsm.Stamp, commands []command.Command) {
			if _, ok := commands[0].(command.ClaimNext); ok {
				<-goOn
			}
		})
		mustPropose(t, n, submitMail(count))
		all[count-1].gone()
		if !all[count-1].finished() || !errors.Is(all[count-1].err, context.Canceled) {
			t.Fatalf("a claim in the queue whose caller has gone: %v", all[count-1].err)
		}
		close(goOn)
		if !all[count].finished() {
			t.Error("the task of the claim that was taken back was promised to nobody")
		}
	})
}

// A claim that finds nothing and keeps waiting releases its result, otherwise the memory of
// all results of its entry would be lost each time.
func TestWaiters_releaseWhatFoundNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int64
		steal := false
		n := newMemoryNode(t, func(n *Node, entry []byte) batch.Future {
			stamp, commands, err := command.DecodeEntry(entry)
			if err != nil {
				t.Error(err)
			}
			if c, ok := commands[0].(command.ClaimNext); ok && c.WorkerID == "w1" && steal {
				steal = false
				n.applyEntry(command.AppendEntry(nil, stamp, mailFor("thief")))
				f := n.applyEntry(entry)
				f.Response().(*fsm.Applied).Release = func() { released.Add(1) }
				return f
			}
			return n.applyEntry(entry)
		})
		steal = true
		waiting := startWaiting(n, mailFor("w1"), time.Hour)
		mustPropose(t, n, submitMail(1))
		if waiting.finished() || released.Load() != 1 {
			t.Errorf("the claim is answered: %v; its result was released %d times", waiting.finished(), released.Load())
		}
		mustPropose(t, n, submitMail(1))
		if !waiting.finished() || released.Load() != 1 {
			t.Errorf("the claim is answered: %v; the first result was released %d times", waiting.finished(), released.Load())
		}
	})
}
