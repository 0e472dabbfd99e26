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

// code reads or writes the fields of
//
//	message Submit {
//	  repeated NewTask tasks = 1;
//	}
func (c Submit) code(f fields) (Command, fields) {
	c.fields(&f)
	return done(c, &f)
}

func (c *Submit) fields(f *fields) { f.NewTasks(1, &c.Tasks, &f.before.taskType) }

// AddSteps adds steps to the parent of a claimed step. A step whose name the parent has already is
// not added again if it is the same step; if it is another, the command is refused.
// Result.Submitted has one element per step.
type AddSteps struct {
	Hold
	Steps []record.AddedStep // 1 to 1,000, each name once
}

func (AddSteps) kind() Kind { return KindAddSteps }

func (c AddSteps) about() About {
	about := c.Hold.about()
	about.Submits = make([]record.NewTask, len(c.Steps))
	for i := range c.Steps {
		about.Submits[i] = c.Steps[i].Task
	}
	about.Changes = 1 + len(c.Steps)
	return about
}

// code reads or writes the fields of
//
//	message AddSteps {
//	  uint64 id = 1;  // the step whose worker adds them
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  repeated AddedStep steps = 4;
//	}
//
//	message AddedStep {
//	  string name = 1;
//	  repeated uint32 depends_on = 2 [packed = false];  // places in steps, ascending
//	  NewTask task = 3;
//	  repeated string after = 4;  // other steps of the parent that it depends on
//	}
func (c AddSteps) code(f fields) (Command, fields) {
	c.fields(&f)
	f.AddedSteps(4, &c.Steps)
	return done(c, &f)
}
