package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewStepsCommand returns the command `claimq steps`.
func NewStepsCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:   "steps ID",
		Short: "Draw the steps of a task, and how far they are",
		Long: `Draw the steps of a task, and how far they are. A step stands below all that it
depends on; those between two arrows do not depend on each other. Of a step that is
blocked the drawing says what it waits for, of others what they came after. The id of
a step draws the task that it belongs to.

  ✓ completed  ▶ claimed  ○ pending  ◷ scheduled  · blocked  ✗ failed  ⊘ cancelled`,
		Example: "  claimq steps 17\n  claimq steps 17 --output json",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return session.WithTask(a, &f, args[0], func(s session.Talk, id uint64) error { return drawSteps(s, cmd, id) })
		},
	}
	session.AddFlags(a, cmd, &f)
	session.Within(cmd, session.LookTimeout)
	return cmd
}

// drawSteps draws the task's steps; of a step, those of its parent.
func drawSteps(s session.Talk, cmd *cobra.Command, id uint64) error {
	var answer wire.Answer
	get := func(id uint64) ([]byte, error) {
		answer = wire.Answer{}
		return s.Do(cmd.Context(), client.Request{Method: http.MethodGet, Path: session.TaskPath(id, "")}, "", &answer)
	}
	body, err := get(id)
	if err == nil && answer.Task != nil && answer.Task.ParentID != 0 {
		body, err = get(answer.Task.ParentID)
	}
	shown, showErr := s.ShowJSON(body, err)
	if err == nil {
		err = showErr
	}
	if err != nil || shown || answer.Task == nil {
		return err
	}
	if len(answer.Task.Steps) == 0 {
		return fmt.Errorf("task %d has no steps", answer.Task.ID)
	}
	return s.App.DrawSteps(answer.Task)
}
