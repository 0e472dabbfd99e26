package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// Submit adds tasks, in order, all in one step. Result.Submitted has one
// element per task. A task whose key is taken is not added; the result names
// the task that has the key. Nor is one that would expire before its delay is over:
// it is Refused, and with it a Submit of that one task.
type Submit struct {
	Tasks []record.NewTask // 1 to 10,000
}

func (Submit) kind() Kind { return KindSubmit }

func (c Submit) about() About {
	return About{Known: true, Submits: c.Tasks, Changes: record.CountTasks(c.Tasks)}
}

func (c Submit) needs() uint32 { return record.NeedsOf(c.Tasks) }

// code goes through the fields of
//
//	message Submit {
//	  repeated NewTask tasks = 1;
//	}
func (c Submit) code(f fields) (Command, []byte, error) {
	f.NewTasks(1, &c.Tasks)
	if f.scratch != nil {
		f.scratch.submit = c
		return &f.scratch.submit, nil, f.End()
	}
	return done(c, &f)
}
