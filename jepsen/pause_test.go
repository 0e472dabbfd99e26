package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

const (
	pauseRounds  = 3
	pauseReaders = 8 // of each task, at the paused node
	pauseLeaseMS = 600_000
	retryPause   = 50 * time.Millisecond
)

// A leader that was stopped until another one leads, and then continued, never gives a
// stale answer: calls sent while it was stopped, and all later ones, show everything that
// the others have acknowledged.
func TestPause_leaderGivesNoStaleAnswer(t *testing.T) {
	c := newCluster(t, 3)
	rec := recorder.New(1)
	defer rec.Close()
	for round := range pauseRounds {
		p := pauseRound{t: t, cluster: c, rec: rec, round: round}
		p.run()
	}
	if err := rec.ReadFinal(deadline(t), c.URLs()); err != nil {
		t.Fatal(err)
	}
	h := rec.History()
	for _, part := range check.Parts(h, false) {
		if t.Log(part.Name, part.Summary); !part.OK() {
			t.Error(part.Found(h))
		}
	}
}

// pauseRound is one round.
type pauseRound struct {
	t       *testing.T
	cluster *procs.Cluster
	rec     *recorder.Recorder
	round   int
}

func (p *pauseRound) run() {
	t := p.t
	t.Helper()
	if err := p.cluster.StartAll(deadline(t)); err != nil {
		t.Fatal(err)
	}
	old, err := p.cluster.WaitLeader(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	before := p.rec.Caller([]string{old.URL()}, 0)
	done, held := p.submit(before, "done"), p.submit(before, "held")
	hold := p.claim(before, "done")

	p.rec.Event("%s, the leader, stopped", old.ID)
	if err := old.Pause(); err != nil {
		t.Fatal(err)
	}
	next, err := p.cluster.WaitLeader(deadline(t), old)
	if err != nil {
		t.Fatal(err)
	}
	// Unknown to the stopped leader.
	after := p.rec.Caller([]string{next.URL()}, 0)
	p.acknowledged(func() history.Op {
		return after.Settle(t.Context(), history.Complete, done, wire.Settle{
			WorkerID: hold.Worker, ClaimToken: hold.Token, Result: json.RawMessage(`1`),
		})[0]
	})
	p.claim(after, "held")
	fresh := p.submit(after, "fresh")

	answered := p.askPaused(old, []uint64{done, held, fresh})
	if answered == 0 {
		t.Error("the continued leader answered no read: nothing was tested")
	}
}

// askPaused sends reads, and a claim of the task that only the new leader knows, to the
// stopped node, continues it, and keeps reading until it knows the new leader. It returns
// the number of answered reads.
func (p *pauseRound) askPaused(old *procs.Node, tasks []uint64) int {
	t := p.t
	var sent, all sync.WaitGroup
	level := make(chan struct{}) // closed when the continued node follows
	var mu sync.Mutex            // guards answered
	answered := 0
	for i := range pauseReaders * len(tasks) {
		caller := p.rec.Caller([]string{old.URL()}, 0)
		caller.Timeout = stepTimeout
		sent.Add(1)
		caller.Sent = sync.OnceFunc(sent.Done)
		all.Go(func() {
			for {
				op := caller.Call(t.Context(), history.Op{Kind: history.Get, TaskID: tasks[i%len(tasks)]})
				mu.Lock()
				if op.Outcome == history.OK {
					answered++
				}
				mu.Unlock()
				select {
				case <-level:
					return
				case <-t.Context().Done():
					return
				default:
				}
			}
		})
	}
	claimer := p.rec.Caller([]string{old.URL()}, 0)
	claimer.Timeout = stepTimeout
	sent.Add(1)
	claimer.Sent = sync.OnceFunc(sent.Done)
	all.Go(func() {
		op := claimer.Claim(t.Context(), p.claimOf("fresh"))
		if op.Code == string(wire.CodeNoPendingTasks) {
			t.Error("stale answer: no pending task, though one had been submitted before")
		}
	})
	sent.Wait() // all requests wait in the stopped node's sockets
	p.rec.Event("%s continued", old.ID)
	if err := old.Continue(); err != nil {
		t.Error(err)
	}
	if _, err := p.cluster.WaitLeader(deadline(t)); err != nil {
		t.Error(err)
	}
	if err := old.WaitReady(deadline(t)); err != nil {
		t.Error(err)
	}
	// It may become ready while all earlier calls are refused.
	_ = pause.Until(deadline(t), retryPause, func() error {
		mu.Lock()
		defer mu.Unlock()
		if answered == 0 {
			return errors.New("no read is answered")
		}
		return nil
	}) // the caller reports an error
	close(level)
	all.Wait()
	return answered
}

// acknowledged repeats the call until it is acknowledged, because on a busy machine a
// leader may step down meanwhile. The others recognize a repeat.
func (p *pauseRound) acknowledged(call func() history.Op) (op history.Op) {
	p.t.Helper()
	err := pause.Until(deadline(p.t), retryPause, func() error {
		if op = call(); op.Outcome != history.OK {
			return fmt.Errorf("%s at %s: got %s %s, want ok", op.Kind, op.Node, op.Outcome, op.Code)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return op
}

// taskType is the type of a task of this round.
func (p *pauseRound) taskType(name string) string { return fmt.Sprintf("%s-%d", name, p.round) }

func (p *pauseRound) submit(c *recorder.Caller, name string) uint64 {
	p.t.Helper()
	noLimit := int32(0)
	return p.acknowledged(func() history.Op {
		return c.Submit(p.t.Context(), wire.NewTask{
			TaskType: p.taskType(name), Params: json.RawMessage(`{}`), MaxAttempts: &noLimit, IdempotencyKey: p.taskType(name),
		})
	}).TaskID
}

func (p *pauseRound) claimOf(name string) wire.Claim {
	return wire.Claim{
		WorkerID: "w-" + name, TaskTypes: []string{p.taskType(name)}, LeaseMS: pauseLeaseMS, ClaimRequestID: "claim-" + p.taskType(name),
	}
}

func (p *pauseRound) claim(c *recorder.Caller, name string) history.Op {
	p.t.Helper()
	return p.acknowledged(func() history.Op { return c.Claim(p.t.Context(), p.claimOf(name)) })
}
