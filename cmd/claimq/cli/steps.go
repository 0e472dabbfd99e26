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
	cmd.AddCommand(newAddStepsCommand(a))
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

// newAddStepsCommand returns the command `claimq steps add`.
func newAddStepsCommand(a *term.App) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Add steps to the task that a claimed step belongs to",
		Long: `Add steps to the task that the claimed step ID belongs to: all of them, or none. The
file is one for 'claimq submit --steps'; its steps may also depend on those that the
task has. A step that the task has under its name is not added again, so you can
repeat the command, also with a later claim of the same step.

A command of 'claimq work' needs no key for this if it writes the file to the path in
CLAIMQ_ADD_STEPS.`,
		Example: `  claimq steps add 17 --steps parts.json --worker w1 --token 5
  ./plan | claimq steps add "$CLAIMQ_TASK_ID" --steps -`,
	}
	var hold holdFlags
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		steps, err := stepsOf(a, from)
		if err != nil {
			return session.Request{}, err
		}
		id, claim, err := hold.of(args[0])
		if err != nil {
			return session.Request{}, err
		}
		body, err := withRaw("steps", steps, claim)
		if err != nil {
			return session.Request{}, err
		}
		return session.Post(session.TaskPath(id, "steps"), body, "Repeat the command: each step is added once.")
	}, func(_ []string, answer *wire.StepsAdded) error {
		text := "added " + term.Count(answer.Added, "step")
		switch answer.Added {
		case 0:
			text = "added nothing, as the steps are there"
		case len(answer.Steps):
		default:
			text += ", the others are there"
		}
		return a.Sayf("%s; 'claimq steps %d' draws them", text, answer.ParentID)
	})
	hold.add(cmd.Flags())
	cmd.Flags().StringVar(&from, "steps", "", "JSON file with the steps; - is standard input (required)")
	return cmd
}

// stepsOf reads an array of steps from a file.
func stepsOf(a *term.App, from string) ([]byte, error) {
	if from == "" {
		return nil, term.UsageErrorf("--steps is missing: give a JSON file with the steps, or -")
	}
	var others newTask
	steps, err := stepsFrom(a, &stepsFlags{from: from}, &others)
	if err == nil && (others.Finalize != "" || others.OnStepFailure != "") {
		return nil, term.UsageErrorf("--steps has finalize or on_step_failure, which the task has already")
	}
	return steps, err
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
