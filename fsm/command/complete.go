package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// Complete ends the task as completed. At most one of Result (JSON as given) and
// ResultPayload (opaque) is set. In the same step it submits Submit and then claims Claim,
// which may get one of the new tasks; Result.Submitted and Result.Claims have the outcome.
// It is refused as a whole if Submit would refuse a follow-up.
type Complete struct {
	Hold
	Result        []byte
	ResultPayload []byte
	Submit        []record.NewTask
	Claim         *ClaimNext // nil = none
	// Late also ends a task whose claim, the last one, has ended meanwhile by its lease or a
	// fail, if the task waits for its next claim: no other worker has it. It needs the token.
	Late bool
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

// code reads or writes the fields of
//
//	message Complete {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;          // 0 none was sent
//	  bytes result = 4;          // JSON as given
//	  bytes result_payload = 5;
//	  repeated NewTask submit = 6;
//	  ClaimNext claim = 7;
//	  bool late = 8;             // also of a task that waits again since this claim
//	}
func (c Complete) code(f fields) (Command, fields) {
	c.fields(&f)
	return done(c, &f)
}

func (c *Complete) fields(f *fields) {
	c.Hold.fields(f)
	f.Bytes(4, &c.Result)
	f.Bytes(5, &c.ResultPayload)
	f.NewTasks(6, &c.Submit, &f.before.taskType)
	if m, ok := f.Message(7, c.Claim != nil); ok {
		if c.Claim == nil {
			c.Claim = f.scratch.newClaim()
		}
		c.Claim.fields(f)
		f.EndMessage(m)
	}
	f.Bool(8, &c.Late)
}
