package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// waiting is a waiting claim in a separate goroutine.
type waiting struct {
	proposed nodes.Proposed
	err      error
	done     chan struct{}
	gone     context.CancelCauseFunc // ends its caller
}

var errGone = errors.New("the caller has gone")

// claimOf returns a claim of one task of the types by a worker.
func claimOf(worker string, types ...string) command.ClaimNext {
	return command.ClaimNext{WorkerID: worker, Types: types, Limit: 1, LeaseMS: 3_600_000}
}

// startClaim begins a claim that waits, and returns when it is waiting.
func startClaim(n *cluster.Node, c command.ClaimNext, wait time.Duration) *waiting {
	w := &waiting{done: make(chan struct{})}
	var ctx context.Context
	ctx, w.gone = context.WithCancelCause(context.Background())
	go func() {
		defer close(w.done)
		w.proposed, w.err = n.Claim(ctx, c, wait, nil)
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

// took waits for the claim's answer and returns the id of the task that it got, 0 for none.
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

// submitOf returns a submit of tasks of a type.
func submitOf(taskType string, count int) command.Submit {
	var s command.Submit
	for range count {
		s.Tasks = append(s.Tasks, fsm.NewTask{Type: taskType, Params: []byte(`{}`), MaxAttempts: 3})
	}
	return s
}

// settleDown waits until everything under way has finished.
func settleDown() { <-time.After(100 * time.Millisecond) }

// Claims that wait get tasks in order of arrival, one per task, and on the leader's word
// alone: no entry is written while they wait.
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

// A claim waits for the types that it lists, or for any; one that cannot take tasks of a
// type does not block those that can.
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
		anyPicky := claimOf("w5")
		anyPicky.MoreAttempts = 8
		rare := startClaim(leader, anyPicky, time.Hour)
		last := startClaim(leader, claimOf("w6"), time.Hour)
		c.Propose(submitOf("fax", 1))
		settleDown()
		if last.took(t) == 0 || rare.finished() {
			t.Fatal("the claim of any type with attempts left is in the way of one of any type")
		}
		c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "fax", Params: []byte(`{}`), MaxAttempts: 9}}})
		settleDown()
		if rare.took(t) == 0 || fresh.finished() {
			t.Fatal("the claim of any type with attempts left did not get the fax")
		}
		c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`{}`), MaxAttempts: 7}}})
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

// A claim whose caller goes takes nothing: the task is for the next.
func TestWait_callerGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		first := startClaim(leader, claimOf("w1", "mail"), time.Hour)
		second := startClaim(leader, claimOf("w2", "mail"), time.Hour)
		first.gone(errGone)
		if !first.finished() || !errors.Is(first.err, errGone) {
			t.Fatalf("a claim whose caller has gone: %v, %v", first.finished(), first.err)
		}
		c.Propose(submitOf("mail", 1))
		settleDown()
		if !second.finished() || second.took(t) == 0 {
			t.Error("the next claim did not get the task")
		}
	})
}

// At the end of its wait a claim gets the empty answer, and nothing was written.
func TestWait_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		c.Propose(submitOf("other", 1))
		index, _ := leader.StateHash()
		begun := time.Now()
		var all []*waiting
		for range 100 {
			all = append(all, startClaim(leader, claimOf("w", "mail"), 20*time.Second))
		}
		for _, w := range all {
			if id := w.took(t); id != 0 || w.proposed.Index < index {
				t.Fatalf("took %d, index %d, want nothing, at least %d", id, w.proposed.Index, index)
			}
		}
		if took := time.Since(begun); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("waited %s", took)
		}
		if now, _ := leader.StateHash(); now != index {
			t.Errorf("claims that wait wrote entries %d to %d", index+1, now)
		}
	})
}

// A claim that waits on a leader that was deposed or stops is told at once.
func TestWait_leadershipEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		old := c.Leader()
		w := startClaim(old, claimOf("w1", "mail"), time.Hour)
		begun := time.Now()
		c.Partition(old)
		leader := c.Leader()
		<-w.done
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("told after %s", took)
		}
		if !errors.Is(w.err, nodes.ErrNotLeader) && !errors.Is(w.err, nodes.ErrNoLeader) {
			t.Errorf("on a leader that is cut off: %v", w.err)
		}
		w = startClaim(old, claimOf("w1", "mail"), time.Hour)
		if !w.finished() || !errors.Is(w.err, nodes.ErrNotLeader) && !errors.Is(w.err, nodes.ErrNoLeader) {
			t.Errorf("on a node that does not lead: %v", w.err)
		}
		c.Heal()

		w = startClaim(leader, claimOf("w1", "mail"), time.Hour)
		begun = time.Now()
		c.Stop(c.Place(leader))
		<-w.done
		if !errors.Is(w.err, nodes.ErrShuttingDown) || time.Since(begun) > time.Second {
			t.Errorf("on a node that stops: %v after %s", w.err, time.Since(begun))
		}
		// A new leader already has claimable tasks.
		c.Propose(submitOf("mail", 1))
		if startClaim(c.Leader(), claimOf("w1", "mail"), time.Hour).took(t) == 0 {
			t.Error("nothing claimed from a new leader")
		}
	})
}

// A repeat of a request that is known, or becomes known while it waits, is answered at
// once.
func TestWait_repeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		claim := claimOf("w1", "mail")
		claim.RequestID = "r1"
		first := startClaim(leader, claim, time.Hour)
		again := startClaim(leader, claim, time.Hour)
		other := startClaim(leader, claimOf("w2", "mail"), time.Hour)
		c.Propose(submitOf("mail", 1))
		settleDown()
		if !first.finished() || !again.finished() || first.took(t) != again.took(t) || !again.proposed.Result.Repeated {
			t.Fatal("the request that was sent twice was not answered twice")
		}
		if other.finished() {
			t.Fatal("a claim was answered without a task")
		}
		late := startClaim(leader, claim, time.Hour)
		settleDown()
		if !late.finished() || late.took(t) != first.took(t) {
			t.Error("a repeat of a known request waits")
		}
		c.Propose(submitOf("mail", 1))
		if other.took(t) == 0 {
			t.Error("the claim behind the repeat got nothing")
		}
	})
}

// A waiting claim is told when another one, which does not wait, is answered under its
// request id: here that is a different request.
func TestWait_repeatOfOneThatDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		for i, wait := range []func(command.ClaimNext) (nodes.Proposed, error){
			func(cmd command.ClaimNext) (nodes.Proposed, error) { return leader.Propose(t.Context(), cmd) },
			func(cmd command.ClaimNext) (nodes.Proposed, error) { return leader.Claim(t.Context(), cmd, 0, nil) },
		} {
			waits, other := claimOf("w1", "mail"), claimOf("w1", "sms")
			waits.RequestID = fmt.Sprint("r", i)
			other.RequestID = waits.RequestID
			first := startClaim(leader, waits, time.Hour)
			c.Propose(submitOf("sms", 1))
			if p, err := wait(other); err != nil || len(p.Result.Claims) != 1 {
				t.Fatalf("claim: %+v, %v", p, err)
			}
			settleDown()
			if !first.finished() || first.proposed.Result.Code != fsm.CodeInvalidRequest {
				t.Error("the claim waits on, although its request id is another's")
			}
		}
	})
}

// The same request without a wait ends those that wait, if there is nothing for it; others
// keep waiting.
func TestWait_endedByTheSameRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		claim, other := claimOf("w1", "mail"), claimOf("w1", "mail")
		claim.RequestID, other.RequestID = "r1", "r2"
		first := startClaim(leader, claim, time.Hour)
		again := startClaim(leader, claim, time.Hour)
		waits := startClaim(leader, other, time.Hour)
		unnamed := startClaim(leader, claimOf("w1", "mail"), time.Hour)
		if _, err := leader.Propose(t.Context(), claimOf("w1", "mail")); err != nil || first.finished() || again.finished() {
			t.Fatalf("a wait has ended by a claim that is not the same request, or %v", err)
		}
		if p, err := leader.Propose(t.Context(), claim); err != nil || len(p.Result.Claims) != 0 || !first.finished() || !again.finished() {
			t.Fatalf("the request waits on after %+v, %v", p, err)
		}
		late := startClaim(leader, claim, time.Hour)
		if _, err := leader.Claim(t.Context(), claim, 0, nil); err != nil || !late.finished() || first.took(t)+again.took(t)+late.took(t) != 0 {
			t.Fatalf("a request that came later waits on, or took something, or %v", err)
		}
		c.Propose(submitOf("mail", 2))
		if waits.took(t) == 0 || unnamed.took(t) == 0 {
			t.Error("the others do not wait on")
		}
	})
}

// A claim that takes less than became claimable passes the rest on: here an answer has room
// for only one of the large tasks that a pause held back.
func TestWait_passesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		pause := command.SetType{Type: "mail", Set: fsm.TypePaused, Settings: fsm.TypeSettings{Paused: true}}
		c.Propose(pause)
		many := claimOf("w1", "mail")
		many.Limit = 5
		all := []*waiting{startClaim(leader, many, time.Hour)}
		for range 2 {
			all = append(all, startClaim(leader, claimOf("w", "mail"), time.Hour))
		}
		for range 3 {
			c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Payload: make([]byte, 5<<20)}}})
		}
		settleDown()
		if all[0].finished() {
			t.Fatal("claimed a task of a type that is paused")
		}
		pause.Settings.Paused = false
		c.Propose(pause)
		settleDown()
		for i, w := range all {
			if !w.finished() || w.took(t) == 0 {
				t.Errorf("claim %d got nothing", i)
			}
		}
	})
}

// A type's rate limit lets waiting claims claim one by one, in time, although nothing else
// is written.
func TestWait_rateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		c.Propose(command.SetType{Type: "mail", Set: fsm.TypeRateLimit, Settings: fsm.TypeSettings{RateLimit: 100_000}}) // one in 10 s
		var all []*waiting
		for i := range 3 {
			all = append(all, startClaim(leader, claimOf(fmt.Sprint("w", i), "mail"), time.Hour))
		}
		all = append(all, startClaim(leader, claimOf("any"), time.Hour))
		c.Propose(submitOf("mail", 10))
		begun := time.Now()
		for i, w := range all {
			if w.took(t) == 0 {
				t.Fatalf("claim %d took nothing", i)
			}
			early := time.Duration(i) * 10 * time.Second
			if at := time.Since(begun); at < early-time.Second || at > early+time.Second {
				t.Errorf("claim %d after %s, want %s", i, at, early)
			}
		}
	})
}

// When a claim of a limited type ends, a waiting claim gets the next task.
func TestWait_maxClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		c.Propose(command.SetType{Type: "mail", Set: fsm.TypeMaxClaimed, Settings: fsm.TypeSettings{MaxClaimed: 1}})
		c.Propose(submitOf("mail", 10))
		first := startClaim(leader, claimOf("w1", "mail"), time.Hour)
		second := startClaim(leader, claimOf("w2", "mail"), time.Hour)
		settleDown()
		id := first.took(t)
		if second.finished() {
			t.Fatal("claimed past the limit")
		}
		c.Propose(command.Complete{Hold: command.Hold{ID: id, WorkerID: "w1"}})
		settleDown()
		if !second.finished() {
			t.Error("the free slot was given to nobody")
		}
	})
}
