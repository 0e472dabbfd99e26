package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewStepsCommand returns the command `claimq steps`.
func NewStepsCommand(a *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "steps ID",
		Short: "Draw the steps of a task, with their status",
		Long: `Draw the steps of a task and their status. Each step is below all steps that it
depends on; steps between two arrows do not depend on each other. For a blocked step
the drawing names what it waits for, for other steps what they came after. You may
give the id of the task or of one of its steps.

  ✓ completed  ▶ claimed  ○ pending  ◷ scheduled  · blocked  ✗ failed  ⊘ cancelled`,
		Example: "  claimq steps 17\n  claimq steps 17 --output json",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		id, err := session.ParseID(args[0])
		return func(s session.Talk) error { return drawSteps(s, cmd, id) }, err
	})
	session.Within(cmd, session.LookTimeout)
	return cmd
}

// drawSteps draws the steps of a task. For a step it draws those of its parent.
func drawSteps(s session.Talk, cmd *cobra.Command, id uint64) error {
	var answer wire.Answer
	get := func(id uint64) ([]byte, error) {
		answer = wire.Answer{}
		return s.Do(cmd.Context(), session.Get(session.TaskPath(id, "")), &answer)
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
		return s.App.Sayf("no steps")
	}
	return s.App.DrawSteps(answer.Task)
}

// stepsFlags holds the flags for submitting a task with steps.
type stepsFlags struct {
	from          string
	finalize      string
	onStepFailure string
}

// addStepsFlags adds the flags to f and returns their names.
func (o *stepsFlags) addStepsFlags(f *pflag.FlagSet) (names []string) {
	own := pflag.NewFlagSet("steps", pflag.ContinueOnError)
	own.StringVar(&o.from, "steps", "", "submit a task with the steps of a JSON file; - is standard input")
	own.StringVar(&o.finalize, "finalize", "", "of --steps: auto (it ends with its last step, the default) or claim (a processor ends it)")
	own.StringVar(&o.onStepFailure, "on-step-failure", "", "of --steps: fail (the other steps are cancelled, the default) or continue (only those that depend on it)")
	own.VisitAll(func(flag *pflag.Flag) {
		flag.Annotations = map[string][]string{term.ExplicitOnly: {}}
		names = append(names, flag.Name)
		f.AddFlag(flag)
	})
	return names
}

// stepsFile is the content of a steps file. The file may also hold the array of steps alone.
type stepsFile struct {
	Steps         json.RawMessage `json:"steps"`
	Finalize      string          `json:"finalize"`
	OnStepFailure string          `json:"on_step_failure"`
}

// stepsFrom reads the steps, byte for byte, and puts the other settings of the file into task. It returns nil without
// --steps.
func stepsFrom(a *term.App, o *stepsFlags, task *newTask) ([]byte, error) {
	if o.from == "" {
		if o.finalize != "" || o.onStepFailure != "" {
			return nil, term.UsageErrorf("--finalize and --on-step-failure are for a task with --steps")
		}
		return nil, nil
	}
	data, err := readInput(a, o.from)
	if err != nil {
		return nil, term.UsageErrorf("--steps: %w", err)
	}
	var s stepsFile
	if data = bytes.TrimSpace(data); bytes.HasPrefix(data, []byte{'['}) && json.Valid(data) {
		s.Steps = data
	} else {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return nil, term.UsageErrorf(`--steps: %w`+"\n"+`It must be an array of steps, or {"steps": [...], "finalize": ..., "on_step_failure": ...}.`, jsonError(err))
		}
		if d.More() || s.Steps == nil {
			return nil, term.UsageErrorf(`--steps must be one array of steps, or one object with "steps".`)
		}
	}
	task.Finalize, task.OnStepFailure = s.Finalize, s.OnStepFailure
	if o.finalize != "" {
		task.Finalize = o.finalize
	}
	if o.onStepFailure != "" {
		task.OnStepFailure = o.onStepFailure
	}
	return s.Steps, nil
}

// newStepText says what a step to submit is, and what it waits for.
func newStepText(s *wire.NewStep) string {
	text := s.Step
	if s.TaskType != "" {
		text += " (" + s.TaskType + ")"
	}
	if len(s.DependsOn) > 0 {
		text += " after " + strings.Join(s.DependsOn, ", ")
	}
	return term.Printable(text)
}
