package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
)

// waiting is a claim that waits in a goroutine of its own.
type waiting struct {
	proposed fsm.Proposed
	err      error
	done     chan struct{}
	gone     context.CancelCauseFunc // its caller goes
}

var errGone = errors.New("the caller has gone")

// claimOf is a claim of one task by a worker, of the types.
func claimOf(worker string, types ...string) fsm.ClaimNext {
	return fsm.ClaimNext{WorkerID: worker, Types: types, Limit: 1, LeaseMS: 3_600_000}
}

// startClaim begins a claim that waits, and returns when it does.
func startClaim(n *cluster.Node, c fsm.ClaimNext, wait time.Duration) *waiting {
	w := &waiting{done: make(chan struct{})}
	var ctx context.Context
	ctx, w.gone = context.WithCancelCause(context.Background())
	go func() {
		defer close(w.done)
		w.proposed, w.err = n.Claim(ctx, c, wait)
	}()
	synctest.Wait()
	return w
}

// finished reports whether the claim has its answer.
func (w *waiting) finished() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// took waits for the claim's answer and returns the id of the task that it
// took, 0 if it took none.
func (w *waiting) took(t *testing.T) uint64 {
	t.Helper()
	<-w.done
	if w.err != nil || w.proposed.Result.Code != "" {
		t.Fatalf("claim: %v, %q", w.err, w.proposed.Result.Code)
	}
	if len(w.proposed.Result.Claims) == 0 {
		return 0
	}
	return w.proposed.Result.Claims[0].Task.ID
}

// submitOf is a submit of tasks of a type.
func submitOf(taskType string, count int) fsm.Submit {
	var s fsm.Submit
	for range count {
		s.Tasks = append(s.Tasks, fsm.NewTask{Type: taskType, Params: []byte(`{}`), MaxAttempts: 3})
	}
	return s
}

// settleDown lets what is under way come to its end.
func settleDown() { <-time.After(100 * time.Millisecond) }

// Claims that wait get tasks in order of arrival, as many as there are tasks,
// and on the leader's word alone: no entry is written while they wait.
func TestWait_order(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		c.Propose(submitOf("other", 1))
		var all []*waiting
		for i := range 10 {
			all = append(all, startClaim(leader, claimOf(fmt.Sprint("w", i), "mail"), time.Hour))
		}
		index, _ := leader.StateHash()
		settleDown()
		if now, _ := leader.StateHash(); now != index {
			t.Errorf("claims that wait wrote entries %d to %d", index+1, now)
		}
		next := 0
		for _, count := range []int{1, 3, 1, 5} {
			first := c.Propose(submitOf("mail", count)).Result.Submitted[0].Task.ID
			settleDown()
			for i, w := range all {
				if w.finished() != (i < next+count) {
					t.Fatalf("%d tasks for those from %d on: claim %d finished: %v", count, next, i, w.finished())
				}
			}
			for i := range count {
				if id := all[next+i].took(t); id != first+uint64(i) {
					t.Errorf("claim %d took task %d, want %d", next+i, id, first+uint64(i))
				}
			}
			next += count
		}
		c.EnsureSame()
	})
}

// A claim waits for the types that it lists, or for any; one that takes no task
// of a type is not in the way of those who do.
func TestWait_matching(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		sms := startClaim(leader, claimOf("w1", "sms"), time.Hour)
		picky := claimOf("w2", "mail")
		picky.MoreAttempts = 5
		fresh := startClaim(leader, picky, time.Hour)
		both := startClaim(leader, claimOf("w3", "mail", "sms"), time.Hour)
		any := startClaim(leader, claimOf("w4"), time.Hour)

		c.Propose(submitOf("mail", 1))
		settleDown()
		if both.took(t) == 0 || sms.finished() || fresh.finished() || any.finished() {
			t.Fatal("the first whom a mail suits did not get it")
		}
		c.Propose(submitOf("fax", 1))
		settleDown()
		if any.took(t) == 0 || sms.finished() || fresh.finished() {
			t.Fatal("the claim of any type did not get the fax")
		}
		c.Propose(fsm.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`{}`), MaxAttempts: 7}}})
		settleDown()
		if fresh.took(t) == 0 || sms.finished() {
			t.Fatal("the claim of a task with attempts left did not get it")
		}
		c.Propose(submitOf("sms", 1))
		if sms.took(t) == 0 {
			t.Fatal("the claim of an sms did not get it")
		}
	})
}

var _ = sync.WaitGroup{}
