package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewFailCommand returns the command `claimq fail`.
func NewFailCommand(a *term.App) *cobra.Command {
	var text string
	var permanent bool
	var retryIn time.Duration
	cmd := &cobra.Command{
		Use:   "fail ID",
		Short: "Fail the attempt of a claimed task",
		Long: `Fail the attempt of a claimed task. If the task has attempts left, it becomes pending
again after its backoff; otherwise it has failed. You can repeat the command with the
same token.`,
		Example: `  claimq fail 17 --worker w1 --token 5 --error "no route to host"
  claimq fail 17 --worker w1 --token 5 --error "quota used up" --retry-in 1h
  claimq fail 17 --worker w1 --token 5 --error "no such address" --permanent`,
	}
	settleCommand(a, cmd, "fail", func(_ []string, s wire.Settle) (any, error) {
		later := cmd.Flags().Changed("retry-in")
		switch {
		case text == "":
			return nil, term.UsageErrorf("--error is missing: say what went wrong")
		case permanent && later:
			return nil, term.UsageErrorf("--permanent and --retry-in are both given: give one of them")
		}
		ms, err := wholeMS("--retry-in", retryIn)
		s.Error, s.Permanent = text, permanent
		if later {
			s.RetryInMS = &ms
		}
		return s, err
	})
	cmd.Flags().StringVar(&text, "error", "", "what went wrong (required)")
	cmd.Flags().BoolVar(&permanent, "permanent", false, "fail the task for good, even if attempts are left")
	term.DurationVar(cmd.Flags(), &retryIn, "retry-in", 0, "time before it can be claimed again, instead of its backoff")
	return cmd
}

// NewExtendCommand returns the command `claimq extend`.
func NewExtendCommand(a *term.App) *cobra.Command {
	var lease time.Duration
	var progress string
	var exact bool
	cmd := &cobra.Command{
		Use:   "extend ID",
		Short: "Extend the lease of a claim, and report progress",
		Long: `Extend the lease of a claim and report progress. An extend shortens the lease
only if it is exact.
The output says whether a cancel of the task was requested.`,
		Example: `  claimq extend 17 --worker w1 --token 5 --lease 10m
  claimq extend 17 --worker w1 --token 5 --progress '{"done":3,"of":10}'`,
	}
	settleCommand(a, cmd, "extend", func(_ []string, s wire.Settle) (body any, err error) {
		if s.LeaseMS, err = wholeMS("--lease", lease); err != nil {
			return nil, err
		}
		s.Exact = exact
		var raw []byte
		if progress != "" {
			if raw, err = jsonArgument(a, "--progress", progress); err != nil {
				return nil, err
			}
		}
		return withRaw("progress", raw, s)
	})
	term.DurationVar(cmd.Flags(), &lease, "lease", 0, "how long it lasts from now on; 0: as long as the claim lasted at first")
	cmd.Flags().BoolVar(&exact, "exact", false, "the lease ends then, even if it would have lasted longer")
	cmd.Flags().StringVar(&progress, "progress", "", "progress of the work, as JSON, @FILE or -; shown with the task")
	return cmd
}

// NewReleaseCommand returns the command `claimq release`.
func NewReleaseCommand(a *term.App) *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use:     "release ID",
		Short:   "Release a claimed task",
		Long:    `Release a claimed task: it becomes pending again, and the attempt is not counted.`,
		Example: "  claimq release 17 --worker w1 --token 5\n  claimq release 17 --worker w1 --token 5 --delay 5m",
	}
	settleCommand(a, cmd, "release", func(_ []string, s wire.Settle) (body any, err error) {
		s.DelayMS, err = wholeMS("--delay", delay)
		return s, err
	})
	term.DurationVar(cmd.Flags(), &delay, "delay", 0, "time before it can be claimed again")
	return cmd
}
