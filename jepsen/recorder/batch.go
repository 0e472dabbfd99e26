package recorder

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// CodeWithOthers is of an op of an atomic batch that was refused for another op.
const CodeWithOthers = "refused_with_others"

// Batch makes the ops of b, whose Fields are a wire.NewTask, a wire.Settle or a
// wire.Claim: an op of each, in order. No two of them may be about one task.
func (c *Caller) Batch(ctx context.Context, b wire.Batch) []history.Op {
	whole, raw := c.exchange(ctx, history.Op{Whole: b.Atomic}, http.MethodPost, "/api/batch", b)
	done := wire.BatchAnswer{Results: make([]wire.OpResult, len(b.Ops))}
	failed := -1
	switch whole.Outcome {
	case history.OK:
		if err := json.Unmarshal(raw, &done); err != nil || !done.Success || len(done.Results) != len(b.Ops) {
			whole.Outcome, whole.Code = history.Unknown, CodeOddAnswer
			done.Results = make([]wire.OpResult, len(b.Ops))
		}
	case history.Failed:
		var refusal wire.Refusal
		if json.Unmarshal(raw, &refusal) == nil && refusal.FailedOp != nil {
			failed = *refusal.FailedOp
		}
	}
	var ops []history.Op
	for i := range b.Ops {
		part, result := whole, &done.Results[i]
		switch {
		case whole.Outcome == history.OK && result.Code != "":
			part.Outcome, part.Code = history.Failed, string(result.Code)
		case whole.Outcome == history.OK:
			part.Repeated = result.Repeated
		case failed >= 0 && i != failed:
			part.Code = CodeWithOthers
		}
		ops = append(ops, batchOf(part, &b.Ops[i], &result.Answer)...)
	}
	c.record(ops...)
	return ops
}

// batchOf is the op, or ops, of one op of a batch. What it did is in a.
func batchOf(part history.Op, asked *wire.Op, a *wire.Answer) []history.Op {
	switch fields := asked.Fields.(type) {
	case wire.NewTask:
		op := with(part, submitOf(&fields))
		if part.Outcome == history.OK && a.Task != nil {
			op.TaskID, op.Created = a.Task.ID, a.Created
		}
		return []history.Op{op}
	case wire.Claim:
		return claimed(part, &fields, a)
	case wire.Settle:
		return settled(part, history.Kind(asked.Op), asked.ID, &fields, a)
	}
	return nil
}
