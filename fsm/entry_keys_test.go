package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// keyCommands has each command that knows key_of_type, with it set. Golden files hold
// them, so they do not change.
func keyCommands() []command.Command {
	task := stepsCommands()[0].(command.Submit).Tasks[0]
	task.KeyOfType = true
	parent := *task.Parent
	parent.Steps = slices.Clone(parent.Steps)
	for i := range parent.Steps {
		parent.Steps[i].Task.KeyOfType = true // which means nothing
	}
	task.Parent = &parent
	complete := stepsCommands()[1].(command.Complete)
	complete.Submit = []record.NewTask{task, task}
	schedule := actsCommands()[1].(command.SetSchedule)
	schedule.Schedule.Task.KeyOfType = true // nor here
	return []command.Command{
		command.Submit{Tasks: []record.NewTask{task}},
		complete,
		command.Batch{Atomic: true, RequestID: "request-1", Ops: []command.Command{command.Submit{Tasks: []record.NewTask{task}}, complete}},
		schedule,
	}
}
