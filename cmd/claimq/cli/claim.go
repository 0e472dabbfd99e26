package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type claimOptions struct {
	session.Flags
	worker            string
	types             []string
	lease, wait       time.Duration
	sortBy, sortOrder string
	attemptsLeft      int
	limit             int
	dependencies      bool
}

// NewClaimCommand returns the command `claimq claim`.
func NewClaimCommand(a *term.App) *cobra.Command {
	var o claimOptions
	cmd := &cobra.Command{
		Use:   "claim",
		Short: "Claim the next task",
		Long: `Claim the next task: the one with the highest priority and, among these, the oldest.
--sort-by created_at takes the oldest task, random any.

With --wait the command waits for a task if there is none. If it gets no task, the
exit code is 4.

With --output env the output is for a shell's eval: CLAIMQ_TASK_ID, _TASK_TYPE,
_ATTEMPT, _CLAIM_TOKEN, _WORKER, and _PARAMS (JSON) or _PAYLOAD (base64). The
commands that settle the claim read worker and token from these variables. The eval
fails if there is no task, and after an error.`,
		Example: `  claimq claim --worker w1
  claimq claim --worker w1 --type mail --type sms --lease 2m --wait 1m
  claimq claim --worker w1 --type mail --sort-by random --limit 10 --output json
  eval "$(claimq claim --worker w1 --wait 30s --output env)" && claimq complete "$CLAIMQ_TASK_ID"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := o.claim(cmd)
			if err != nil {
				return err
			}
			return session.With(a, &o.Flags, func(s session.Talk) error { return claim(cmd.Context(), s, &o, w) })
		},
	}
	session.AddFlags(a, cmd, &o.Flags, "env")
	f := cmd.Flags()
	f.StringVar(&o.worker, "worker", "", "who claims: letters, digits and _ . : @ - (required)")
	f.StringSliceVar(&o.types, "type", nil, "task type to take; repeatable; none: any")
	term.DurationVar(f, &o.lease, "lease", 0, "how long the claim lasts; 0: the task's own, else its type's, else the server's default")
	term.DurationVar(f, &o.wait, "wait", 0, "how long to wait for a task if there is none")
	f.StringVar(&o.sortBy, "sort-by", "", "priority (the default), created_at or random")
	f.StringVar(&o.sortOrder, "sort-order", "", "asc or desc; the default is desc for priority, asc for created_at")
	f.IntVar(&o.attemptsLeft, "max-attempts-remaining", 0, "only tasks with more attempts left than this; those without a limit always have")
	f.IntVar(&o.limit, "limit", 0, "claim up to this many at once; 0: one")
	f.BoolVar(&o.dependencies, "dependencies", false, "show a step with the results of the steps that it depends on, up to 4 MiB")
	return cmd
}

// FailEval prints a command that fails in a shell's eval, if args ask for output for one. args have ended with an
// error. Without this, eval of nothing would succeed, and the variables could still be those of the claim before. The
// flags themselves may be wrong, so FailEval reads them itself.
func FailEval(a *term.App, args []string) {
	output := a.Getenv("CLAIMQ_OUTPUT")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--output="); ok {
			output = value
		} else if i > 0 && args[i-1] == "--output" {
			output = arg
		}
	}
	if len(args) > 0 && args[0] == "claim" && output == "env" {
		fmt.Fprint(a.Stdout, "unset CLAIMQ_TASK_ID CLAIMQ_CLAIM_TOKEN\nfalse\n")
	}
}

// claim builds the request from the flags, without the time that it waits.
func (o *claimOptions) claim(cmd *cobra.Command) (w wire.Claim, err error) {
	switch {
	case o.worker == "":
		return w, term.UsageErrorf("--worker is missing: say who claims")
	case o.wait < 0:
		return w, term.UsageErrorf("--wait is %v: it must not be negative", o.wait)
	case o.limit < 0 || cmd.Flags().Changed("limit") && o.limit == 0:
		return w, term.UsageErrorf("--limit is %d: it must be 1 to 1000", o.limit)
	case o.limit > 0 && o.Output == "env":
		return w, term.UsageErrorf("--limit does not go with --output env: it has room for one task")
	case o.dependencies && o.Output == "env":
		return w, term.UsageErrorf("--dependencies does not go with --output env: take --output json")
	}
	w = wire.Claim{
		WorkerID: o.worker, TaskTypes: o.types, SortBy: o.sortBy, SortOrder: o.sortOrder,
		MaxAttemptsRemaining: o.attemptsLeft, Limit: o.limit,
	}
	if o.dependencies {
		w.Include = []string{wire.IncludeDependencies}
	}
	w.LeaseMS, err = wholeMS("--lease", o.lease)
	return w, err
}

func claim(ctx context.Context, s session.Talk, o *claimOptions, w wire.Claim) error {
	body, answer, err := claimNext(ctx, s, w, o.wait)
	shown, showErr := s.ShowJSON(body, err)
	switch {
	case err != nil:
		return err
	case showErr != nil:
		return showErr
	case answer.Task == nil && len(answer.Tasks) == 0:
		return term.NoTaskError{}
	case shown:
		return nil
	case o.Output == "env":
		return showEnv(s.App.Stdout, answer.Task, o.worker)
	case answer.Task != nil:
		return s.App.ShowTask(answer.Task)
	}
	return showClaims(s.App, answer.Tasks)
}

// showClaims prints one row per claimed task.
func showClaims(a *term.App, tasks []wire.Task) error {
	rows := [][]string{{"ID", "TYPE", "TOKEN", "LEASE LEFT", "ATTEMPT", "PARAMS"}}
	for i := range tasks {
		t := &tasks[i]
		left := ""
		if t.LeaseRemainingMS != nil {
			left = term.ShowMS(*t.LeaseRemainingMS)
		}
		rows = append(rows, []string{
			strconv.FormatUint(t.ID, 10), term.Cell(t.TaskType), term.CellOf(t.ClaimToken), term.Cell(left),
			strconv.Itoa(int(t.Attempts)), term.Cell(term.ShowValue(t.Params, t.Payload)),
		})
	}
	return a.Table(rows)
}

// showEnv prints the claim as variables for a shell's eval.
func showEnv(w io.Writer, t *wire.Task, worker string) error {
	var b strings.Builder
	set := func(name, value string) {
		fmt.Fprintf(&b, "export CLAIMQ_%s=%s\n", name, term.ShellQuote(value))
	}
	set("TASK_ID", strconv.FormatUint(t.ID, 10))
	set("TASK_TYPE", t.TaskType)
	set("ATTEMPT", strconv.Itoa(int(t.Attempts)))
	if t.ClaimToken != nil {
		set("CLAIM_TOKEN", strconv.FormatUint(*t.ClaimToken, 10))
	}
	set("WORKER", worker)
	if len(t.Payload) > 0 {
		set("PAYLOAD", base64.StdEncoding.EncodeToString(t.Payload))
		b.WriteString("unset CLAIMQ_PARAMS\n") // left by the claim before
	} else {
		set("PARAMS", string(t.Params))
		b.WriteString("unset CLAIMQ_PAYLOAD\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
