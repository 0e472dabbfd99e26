package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

type claimOptions struct {
	clientFlags
	worker string
	types  []string
	lease  time.Duration
}

func newClaimCommand(a *app) *cobra.Command {
	var o claimOptions
	cmd := &cobra.Command{
		Use:   "claim",
		Short: "Claim the next task",
		Long: `Claim the next task: the one with the highest priority, of those the oldest.

With --output env it prints lines for a shell's eval: CLAIMQ_TASK_ID, _TASK_TYPE,
_ATTEMPT, _CLAIM_TOKEN, _WORKER, and _PARAMS (JSON) or _PAYLOAD (base64). The
commands that settle the claim take worker and token from there. Without a task the
exit code is 4, and the eval fails too.`,
		Example: `  claimq claim --worker w1
  claimq claim --worker w1 --type mail --type sms --lease 2m --output json
  eval "$(claimq claim --worker w1 --output env)" && claimq complete "$CLAIMQ_TASK_ID"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.worker == "" {
				return usageErrorf("--worker is missing: say who claims")
			}
			if err := checkLease(o.lease); err != nil {
				return err
			}
			body, err := json.Marshal(wire.Claim{
				WorkerID: o.worker, TaskTypes: o.types, LeaseMS: o.lease.Milliseconds(), ClaimRequestID: rand.Text(),
			})
			if err != nil {
				return err
			}
			return a.talk(&o.clientFlags, func(s session) error {
				var answer wire.Answer
				r := client.Request{Method: http.MethodPost, Path: "/api/tasks/claim", Body: body, Repeatable: true}
				shown, err := s.call(cmd.Context(), r, "If a task was claimed, it can be claimed again when the lease has ended.", &answer)
				if err != nil && o.output == "env" {
					// eval of nothing succeeds, and the variables may be of the
					// claim before.
					fmt.Fprint(a.stdout, "unset CLAIMQ_TASK_ID CLAIMQ_CLAIM_TOKEN\nfalse\n")
				}
				if err != nil || shown || answer.Task == nil {
					return err
				}
				if o.output == "env" {
					return showEnv(a.stdout, answer.Task, o.worker)
				}
				return a.showTask(answer.Task)
			})
		},
	}
	addClientFlags(a, cmd, &o.clientFlags, "env")
	f := cmd.Flags()
	f.StringVar(&o.worker, "worker", "", "who claims: letters, digits, _ and - (required)")
	f.StringSliceVar(&o.types, "type", nil, "task type to take; repeatable; none: any")
	f.DurationVar(&o.lease, "lease", 0, "how long the claim lasts; 0: the task's own, else the server's default")
	return cmd
}

// checkLease refuses what would be sent as another length than was said.
func checkLease(d time.Duration) error {
	if d < 0 || d%time.Millisecond != 0 {
		return usageErrorf("--lease is %v: it must be whole milliseconds, not negative", d)
	}
	return nil
}

// showEnv prints the claim for a shell's eval.
func showEnv(w io.Writer, t *wire.Task, worker string) error {
	var b strings.Builder
	set := func(name, value string) {
		fmt.Fprintf(&b, "export CLAIMQ_%s=%s\n", name, shellQuote(value))
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
		b.WriteString("unset CLAIMQ_PARAMS\n") // of the claim before
	} else {
		set("PARAMS", string(t.Params))
		b.WriteString("unset CLAIMQ_PAYLOAD\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shellQuote makes one word of s for any POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
