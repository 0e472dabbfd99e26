package command

import "github.com/claimq/claimq/fsm/record"

// AddSteps adds steps to the parent of a step that is claimed. One whose name the parent has
// is not added again if it is the same; the command is refused if it is another. Result.Submitted
// has one element per step.
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

// code goes through the fields of
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
