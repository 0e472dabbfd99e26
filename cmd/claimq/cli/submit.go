package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type submitOptions struct {
	session.Flags
	taskFlags
	stepsFlags
	taskFlagNames []string // --file refuses these
	file          string
	wait          time.Duration
}

// NewSubmitCommand returns the command `claimq submit`.
func NewSubmitCommand(a *term.App) *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:   "submit TYPE [PARAMS | @FILE | -] | [TYPE] --file FILE",
		Short: "Submit a task, a task with steps, or a file of tasks",
		Long: `Submit a task, a task with steps, or a file of tasks.

PARAMS is JSON and is stored byte for byte. @FILE reads it from a file, - from
standard input; the default is {}. A task with a --key is submitted once: if a task
with that key exists, the command shows that task instead. With --unique active that
only holds until the task ends.

--file reads one task per line, an object with the fields of POST /api/tasks
(task_type, params, priority, idempotency_key, ...). TYPE is the type of lines
without a task_type. - is standard input. One request has up to 1,000 lines (10,000
tasks including steps), and of its valid lines either all are submitted or none.
Refused lines are reported on standard error.

--steps submits a task with steps. The file has a JSON array of steps, each with the
fields of POST /api/tasks, its name (step) and the names of the steps it waits for
(depends_on); or an object with steps, finalize and on_step_failure. Workers claim
steps like tasks, and the task ends with them. It needs no PARAMS. 'claimq steps ID'
draws the steps.

--wait waits for the end of the task and shows its result. The exit code is 1 if it
failed or was cancelled, and 3 if it has not ended in that time.`,
		Example: `  claimq submit mail '{"to":"ada@example.org"}'
  claimq submit mail @letter.json --key letter-17 --priority 10
  claimq submit mail '{"to":"bob"}' --delay 10m --label customer=7 --backoff 1s,10m
  claimq submit report --run-at 2026-12-24T18:00:00+01:00 --group monthly --retention 30d
  echo '[1,2,3]' | claimq submit sum - --wait 30s
  claimq submit report --steps steps.json --wait 5m
  echo '[{"step":"a","params":1},{"step":"b","params":2,"depends_on":["a"]}]' | claimq submit report --steps -
  claimq submit --file tasks.ndjson`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 { // --file or its variable is set
				return nil
			}
			return term.Arguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.wait < 0 || o.wait > 0 && o.file != "" {
				return term.UsageErrorf("--wait is for one task, and not negative")
			}
			if o.file != "" {
				return submitFile(a, cmd, &o, args)
			}
			return submitOne(a, cmd, &o, args)
		},
	}
	session.AddFlags(a, cmd, &o.Flags)
	f := cmd.Flags()
	o.taskFlagNames = append(o.addTaskFlags(f), o.addStepsFlags(f)...)
	term.DurationVar(f, &o.wait, "wait", 0, "how long to wait for the end of the task, to show its result")
	f.StringVar(&o.file, "file", "", "submit the tasks of a file, one JSON object a line; - is standard input")
	return cmd
}

func submitOne(a *term.App, cmd *cobra.Command, o *submitOptions, args []string) error {
	if len(args) == 0 {
		return term.MissingArgument(cmd, "TYPE")
	}
	if strings.ContainsAny(args[0][:1], `{["`) {
		return term.UsageErrorf("TYPE is %s, which is PARAMS: the task's type comes before it, as in: claimq submit mail '{\"to\":\"ada\"}'", term.CutTo(term.Printable(args[0]), 60))
	}
	task, err := o.task(cmd.Flags())
	if err != nil {
		return err
	}
	if len(args) > 1 && args[1] == "-" && o.from == "-" {
		return term.UsageErrorf("PARAMS and --steps cannot both be standard input")
	}
	steps, err := stepsFrom(a, &o.stepsFlags, task)
	if err != nil {
		return err
	}
	var params []byte
	switch {
	case len(args) > 1:
		if params, err = jsonArgument(a, "PARAMS", args[1]); err != nil {
			var unread *fs.PathError
			if (args[1] == "-" || strings.HasPrefix(args[1], "@")) && !errors.As(err, &unread) {
				err = term.UsageErrorf("%w\nTo submit many tasks, one a line: --file FILE; - is standard input.", err)
			}
			return err
		}
	case steps == nil: // a task with steps needs no params
		params = []byte("{}")
	}
	task.TaskType = args[0]
	if o.sent.IdempotencyKey == "" {
		task.IdempotencyKey = rand.Text()
	}
	body, err := withRaw("steps", steps, task)
	if err != nil {
		return err
	}
	body = withField("params", params, body)
	return session.With(a, &o.Flags, func(s session.Talk) error {
		r, err := session.Post("/api/tasks", body, "Repeat the command with --key "+task.IdempotencyKey+": the task is not submitted twice.")
		if err != nil {
			return err
		}
		if o.wait > 0 {
			return submitAndWait(cmd.Context(), s, r, o)
		}
		return session.Ask(cmd.Context(), s, r, func(answer *wire.Answer) error {
			if answer.Task == nil {
				return nil
			}
			return a.Sayf("%s", submittedText(a, answer, o.sent.IdempotencyKey))
		})
	})
}

// submitAndWait submits the task and shows how it ended. With --output json it prints the current
// task.
func submitAndWait(ctx context.Context, s session.Talk, r session.Request, o *submitOptions) error {
	var answer wire.Answer
	if _, err := s.Do(ctx, r, &answer); err != nil || answer.Task == nil {
		_, _ = s.ShowJSON(nil, err)
		return err
	}
	if s.Flags.Output != "json" {
		fmt.Fprintln(s.App.Stdout, submittedText(s.App, &answer, o.sent.IdempotencyKey))
	}
	return showEnded(ctx, s, session.TaskPath(answer.Task.ID, ""), o.wait)
}

// showEnded waits up to wait for the end of the task at path, and shows how it ended. With --output json it prints the
// current task.
func showEnded(ctx context.Context, s session.Talk, path string, wait time.Duration) error {
	ended, body, err := waitEnded(ctx, s, path, wait)
	if err != nil {
		_, _ = s.ShowJSON(nil, err)
		return err
	}
	shown, err := s.ShowJSON(body, nil)
	if err == nil && !shown {
		err = s.App.ShowTask(ended)
	}
	if err != nil {
		return err
	}
	return endError(ended)
}

// endError returns an error for a task that failed, was cancelled or has not ended yet.
func endError(t *wire.Task) error {
	switch client.TaskStatus(t.Status) {
	case client.StatusCompleted:
		return nil
	case client.StatusFailed, client.StatusCancelled:
		return fmt.Errorf("task %d has %s", t.ID, map[string]string{"failed": "failed", "cancelled": "been cancelled"}[t.Status])
	}
	return &term.NotEndedError{ID: t.ID, Status: t.Status}
}

// submittedText says what the submit did. key is the user's own key, "" for a random one.
func submittedText(a *term.App, answer *wire.Answer, key string) string {
	t := answer.Task
	switch {
	case answer.Created || key == "": // if a random key is taken, an earlier try of ours took it
		text := fmt.Sprintf("submitted task %d", t.ID)
		if t.Status == "scheduled" && t.RunAt != nil {
			text += ", to run at " + a.ShowTime(*t.RunAt)
		}
		if len(t.Steps) > 0 {
			text += fmt.Sprintf(" with %s; 'claimq steps %d' draws them", term.Count(len(t.Steps), "step"), t.ID)
		}
		return text
	case answer.Replaced:
		text := fmt.Sprintf("task %d had that key, and has these params now", t.ID)
		if t.Status == "scheduled" && t.RunAt != nil {
			text += ", to run at " + a.ShowTime(*t.RunAt)
		}
		return text
	case answer.SameRequest != nil && !*answer.SameRequest:
		return fmt.Sprintf("task %d has that key already, with another type or other params", t.ID)
	}
	return fmt.Sprintf("task %d has that key already", t.ID)
}
