package sim

import "github.com/claimq/claimq/fsm"

// real returns the steps in the machine's words.
func (p *plan) real() *fsm.NewParent {
	if p == nil {
		return nil
	}
	r := &fsm.NewParent{Steps: make([]fsm.NewStep, len(p.steps)), ByClaim: p.byClaim, Continue: p.goesOn}
	for i, s := range p.steps {
		r.Steps[i] = fsm.NewStep{Name: s.name, Task: realTasks([]newTask{s.task})[0]}
		for _, on := range s.on {
			r.Steps[i].DependsOn = append(r.Steps[i].DependsOn, uint16(on))
		}
	}
	return r
}

// realEnding is real of what is about the finalization of a parent.
func (c *command) realEnding() fsm.Command {
	switch c.verb {
	case verbClaimEnd:
		return fsm.ClaimFinalization{ID: c.id, ProcessorID: c.worker, TimeoutMS: c.timeoutMS}
	case verbExtendEnd:
		return fsm.ExtendFinalization{ID: c.id, ProcessorID: c.worker, TimeoutMS: c.timeoutMS}
	case verbReleaseEnd:
		return fsm.ReleaseFinalization{ID: c.id, ProcessorID: c.worker}
	default:
		return fsm.Finalize{ID: c.id, ProcessorID: c.worker, Token: c.token, Failed: c.failed, Result: bytesOf(c.result), Error: c.reason}
	}
}
