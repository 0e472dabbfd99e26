package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// Submit adds tasks in order, in one step. Result.Submitted has one element per task. A
// task whose key is taken is not added; its element names the task that has the key. A task
// that would expire before its delay is over is not added either: it is Refused, and a
// Submit of that task alone is refused.
type Submit struct {
	Tasks []record.NewTask // 1 to 10,000
}

func (Submit) kind() Kind { return KindSubmit }

func (c Submit) about() About {
	return About{Known: true, Submits: c.Tasks, Changes: record.CountTasks(c.Tasks)}
}

// code goes through the fields of
//
//	message Submit {
//	  repeated NewTask tasks = 1;
//	}
func (c Submit) code(f fields) (Command, fields) {
	c.fields(&f)
	return done(c, &f)
}

func (c *Submit) fields(f *fields) { f.NewTasks(1, &c.Tasks, &f.before.taskType) }
