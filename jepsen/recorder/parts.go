package recorder

import (
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// with is the op of a call with what is alike in all of its ops.
func with(whole, op history.Op) history.Op {
	op.Process, op.Call, op.Return, op.Index, op.Node, op.Whole = whole.Process, whole.Call, whole.Return, whole.Index, whole.Node, whole.Whole
	op.Outcome, op.Code, op.Repeated = whole.Outcome, whole.Code, whole.Repeated
	return op
}

// taken is the op for each of the tasks that an answer names, or without one.
func taken(op history.Op, tasks []*wire.Task, claims bool) []history.Op {
	if op.Outcome != history.OK || len(tasks) == 0 {
		return []history.Op{op}
	}
	ops := make([]history.Op, len(tasks))
	for i, t := range tasks {
		ops[i] = op
		ops[i].TaskID = t.ID
		if claims && t.ClaimToken != nil {
			ops[i].Token = *t.ClaimToken
			if t.ClaimState == "" { // of a repeat it shows what is now
				ops[i].Seen = seen(t)
			}
		}
	}
	return ops
}

// claimed are the ops of a claim.
func claimed(whole history.Op, asked *wire.Claim, a *wire.Answer) []history.Op {
	tasks := make([]*wire.Task, 0, len(a.Tasks)+1)
	for i := range a.Tasks {
		tasks = append(tasks, &a.Tasks[i])
	}
	if len(tasks) == 0 && a.Task != nil {
		tasks = append(tasks, a.Task)
	}
	return taken(with(whole, claimOf(asked)), tasks, true)
}

// settled are the ops of a settling call: its own, a submit for each task that
// follows, and a claim.
func settled(whole history.Op, kind history.Kind, id uint64, s *wire.Settle, a *wire.Answer) []history.Op {
	op := with(whole, history.Op{Kind: kind, TaskID: id, Token: s.ClaimToken, Worker: s.WorkerID, Result: string(s.Result), LeaseMS: s.LeaseMS, DelayMS: s.DelayMS})
	if a.Task != nil && !a.Repeated {
		op.Seen = seen(a.Task)
	}
	ops := []history.Op{op}
	for i := range s.Submit {
		op := with(whole, submitOf(&s.Submit[i]))
		if i < len(a.Submitted) {
			// A repeat tells what the first complete created.
			op.TaskID, op.Created = a.Submitted[i].ID, a.Submitted[i].Created && !a.Repeated
		}
		ops = append(ops, op)
	}
	if s.Claim != nil {
		var tasks []*wire.Task
		if a.Claimed != nil && a.Claimed.Task != nil {
			tasks = append(tasks, a.Claimed.Task)
		}
		ops = append(ops, taken(with(whole, claimOf(s.Claim)), tasks, true)...)
	}
	return ops
}
