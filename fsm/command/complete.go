package command

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Complete ends the task as completed. At most one of Result (JSON as given)
// and ResultPayload (opaque) is set. In the same step it submits Submit and then
// claims Claim, which may get one of them. Result.Submitted and Result.Claims
// have the outcome. With a follow-up that Submit would refuse it is refused as a whole.
type Complete struct {
	Hold
	Result        []byte
	ResultPayload []byte
	Submit        []record.NewTask
	Claim         *ClaimNext // nil = none
}

func (Complete) kind() Kind { return KindComplete }

func (c Complete) about() About {
	about := c.Hold.about()
	about.Submits, about.Changes = c.Submit, c.changes()
	if c.Claim != nil {
		about.Claims, about.Claimer, about.Types = true, c.Claim.WorkerID, c.Claim.Types
	}
	return about
}

// changes is About.Changes.
func (c *Complete) changes() int {
	n := 1 + record.CountTasks(c.Submit)
	if c.Claim != nil {
		n += int(c.Claim.Limit)
	}
	return n
}

func (c Complete) needs() uint32 {
	if len(c.Submit) > 0 || c.Claim != nil {
		return max(record.LevelLife, record.NeedsOf(c.Submit))
	}
	return 0
}

// appendBody appends
//
//	message Complete {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;          // 0 none was sent
//	  bytes result = 4;          // JSON as given
//	  bytes result_payload = 5;
//	  repeated NewTask submit = 6;
//	  ClaimNext claim = 7;
//	}
func (c Complete) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	b = wire.PutBytes(b, 4, c.Result)
	b = wire.PutBytes(b, 5, c.ResultPayload)
	b = record.AppendNewTasks(b, 6, c.Submit)
	if c.Claim == nil {
		return b
	}
	mark := len(b)
	b, start := wire.BeginMessage(b, 7)
	return wire.EndOptional(c.Claim.appendBody(b), mark, start)
}

func (Complete) decode(r fieldReader) (Command, error) {
	var c Complete
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.Result = r.Bytes()
		case r.Num == 5:
			c.ResultPayload = r.Bytes()
		case r.Num == 6:
			c.Submit = r.AddTask(c.Submit)
		case r.Num == 7:
			in := r.scratch.fieldsOf(r.Single())
			c.Claim = r.scratch.newClaim()
			*c.Claim = readClaimNext(&in)
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	if r.scratch != nil {
		r.scratch.complete = c
		return &r.scratch.complete, r.Err
	}
	return c, r.Err
}
