package parents

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// worker claims steps and settles them, both by the hundred.
type worker struct {
	*Load
	caller *caller
	rng    *rand.Rand
	name   string
}

// work is one worker after the other: when one dies, the next comes.
func (l *Load) work(i int) {
	w := &worker{Load: l, caller: l.caller(i), rng: l.rng(2000 + i)}
	for life := 1; l.ctx.Err() == nil; life++ {
		w.name = fmt.Sprintf("w%d-%d", i+1, life)
		for w.turn() {
		}
	}
}

// turn claims steps and does what workers do with them. It returns false when
// the worker has died, or everybody stops.
func (w *worker) turn() bool {
	req := wire.Claim{
		WorkerID: w.name, TaskTypes: []string{"step-0", "step-1", "step-2"}[:1+w.rng.Intn(stepTypes)], Limit: 1 + w.rng.Intn(claimMax), LeaseMS: leaseMS,
		WaitMS: 500, ClaimRequestID: fmt.Sprintf("c%d-%d", w.cfg.Seed, w.requests.Add(1)),
	}
	if w.rng.Intn(2) == 0 {
		req.TaskTypes = []string{fmt.Sprintf("step-%d", w.rng.Intn(stepTypes))}
	}
	if w.rng.Intn(4) == 0 {
		req.SortBy = "created_at"
	}
	asked := time.Now()
	var answer wire.Answer
	if err := w.caller.again(w.ctx, http.MethodPost, "/api/tasks/claim", req, &answer); err != nil {
		w.failedOn("a claim", err)
		return w.ctx.Err() == nil
	}
	if answer.Repeated { // asked long ago: the leases began then
		asked = asked.Add(-leaseMS * time.Millisecond)
	}
	switch n := w.rng.Intn(1000); {
	case len(answer.Tasks) == 0:
	case n < 12: // it dies
		w.dropped.Add(int64(len(answer.Tasks)))
		return false
	case n < 24: // much too late
		if w.pause(w.ctx, leaseMS*time.Millisecond*11/10) == nil {
			w.settle(answer.Tasks, asked)
		}
	case n < 40: // it gives them back
		w.release(answer.Tasks)
	default:
		w.settle(answer.Tasks, asked)
	}
	return w.ctx.Err() == nil
}

// settle completes the steps, or fails those that are to fail.
func (w *worker) settle(tasks []wire.Task, asked time.Time) {
	batch := wire.Batch{}
	for i := range tasks {
		batch.Ops = append(batch.Ops, w.op(&tasks[i]))
	}
	w.send(batch, tasks, asked)
}

// op returns what is to be done with a claimed step.
func (w *worker) op(t *wire.Task) wire.Op {
	var p params
	if err := json.Unmarshal(t.Params, &p); err != nil || t.ParentID == 0 || t.Step != stepName(p.Place) || t.ID != t.ParentID+1+uint64(p.Place) || t.ClaimToken == nil {
		w.ledger.Violate("a claim was answered with an odd step: task %d, step %q of %d, params %s", t.ID, t.Step, t.ParentID, t.Params)
		return wire.Op{Op: "extend", ID: t.ID}
	}
	s := wire.Settle{WorkerID: w.name, ClaimToken: *t.ClaimToken}
	switch {
	case p.Kind == stepBad:
		s.Error, s.Permanent = badError, true
		return wire.Op{Op: "fail", ID: t.ID, Fields: s}
	case p.Kind == stepFlaky && t.Attempts == 1:
		s.Error = flakyError
		return wire.Op{Op: "fail", ID: t.ID, Fields: s}
	}
	s.Result = json.RawMessage(stepResult(p.Parent, p.Place))
	return wire.Op{Op: "complete", ID: t.ID, Fields: s}
}

// release gives the steps back.
func (w *worker) release(tasks []wire.Task) {
	batch := wire.Batch{}
	for i := range tasks {
		s := wire.Settle{WorkerID: w.name}
		if tasks[i].ClaimToken != nil {
			s.ClaimToken = *tasks[i].ClaimToken
		}
		batch.Ops = append(batch.Ops, wire.Op{Op: "release", ID: tasks[i].ID, Fields: s})
	}
	w.send(batch, tasks, time.Time{})
}

// send sends the batch until its outcome is known. An op may be refused only
// once the lease, counted from before the claim was asked for, may have ended, or
// if it may have been done by a request before: a failure that was not the last
// lets another have the step.
func (w *worker) send(batch wire.Batch, tasks []wire.Task, asked time.Time) {
	var answer wire.BatchAnswer
	err := w.caller.again(w.ctx, http.MethodPost, "/api/batch", batch, &answer)
	answered := time.Now()
	if err != nil {
		w.failedOn("a batch", err)
		return
	}
	if len(answer.Results) != len(batch.Ops) {
		w.ledger.Violate("a batch of %d ops has %d results", len(batch.Ops), len(answer.Results))
		return
	}
	within := !w.caller.unsure && answered.Before(asked.Add(leaseMS*time.Millisecond*1999/2000))
	for i := range answer.Results {
		r := &answer.Results[i]
		switch r.Code {
		case "":
		case wire.CodeStaleClaim, wire.CodeTaskNotClaimed, wire.CodeWrongWorker, wire.CodeTaskCompleted, wire.CodeTaskFailed, wire.CodeTaskCancelled:
			w.late.Add(1)
			if within {
				w.ledger.Violate("%s of task %d with token %d is refused before its lease has ended: %s", batch.Ops[i].Op, tasks[i].ID, *tasks[i].ClaimToken, r.Code)
			}
		default:
			w.ledger.Violate("%s of task %d is refused: %s: %s", batch.Ops[i].Op, tasks[i].ID, r.Code, r.Error)
		}
	}
}

// failedOn notes an answer that no worker should get.
func (w *worker) failedOn(what string, err error) {
	var no *refused
	if errors.As(err, &no) {
		w.ledger.Violate("%s is refused: %v", what, err)
		return
	}
	w.oddly(err)
}
