package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// realPlan returns the steps in the machine's words.
func realPlan(p *model.Plan) *fsm.NewParent {
	if p == nil {
		return nil
	}
	r := &fsm.NewParent{Steps: make([]fsm.NewStep, len(p.Steps)), ByClaim: p.ByClaim, Continue: p.GoesOn}
	for i, s := range p.Steps {
		r.Steps[i] = fsm.NewStep{Name: s.Name, Task: realTasks([]model.NewTask{s.Task})[0]}
		for _, on := range s.On {
			r.Steps[i].DependsOn = append(r.Steps[i].DependsOn, uint16(on))
		}
	}
	return r
}

// realEnding is real of what is about the finalization of a parent.
func realEnding(c *model.Command) command.Command {
	switch c.Verb {
	case model.VerbClaimEnd:
		return command.ClaimFinalization{ID: c.ID, ProcessorID: c.Worker, TimeoutMS: c.TimeoutMS}
	case model.VerbExtendEnd:
		return command.ExtendFinalization{ID: c.ID, ProcessorID: c.Worker, TimeoutMS: c.TimeoutMS}
	case model.VerbReleaseEnd:
		return command.ReleaseFinalization{ID: c.ID, ProcessorID: c.Worker}
	default:
		return command.Finalize{ID: c.ID, ProcessorID: c.Worker, Token: c.Token, Failed: c.Failed, Result: bytesOf(c.Result), Error: c.Reason}
	}
}
