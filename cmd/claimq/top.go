package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/cli"
	"github.com/claimq/claimq/cmd/claimq/operate"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// topIntervalMin and topIntervalMax bound --interval.
const (
	topIntervalMin = 200 * time.Millisecond
	topIntervalMax = time.Minute
)

// topRows bounds the types and the workers that a look shows.
const topRows = 20

func newTopCommand(a *term.App) *cobra.Command {
	var interval time.Duration
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the nodes, the task types and the workers",
		Long: `Print what 'cluster status', 'types' and 'workers' print, again and again until Ctrl-C:
the ` + strconv.Itoa(topRows) + ` types with most pending tasks, and as many workers. Where there are keys, the nodes
are only shown to the role operator. With --output json each look is a line for each
answer, as the server gave it.`,
		Example: "  claimq top\n  claimq top --interval 10s\n  claimq top --once",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		if interval < topIntervalMin || interval > topIntervalMax {
			return nil, term.UsageErrorf("--interval is %v: it must be %v to %v", interval, topIntervalMin, topIntervalMax)
		}
		return func(s session.Talk) error {
			look := func() error { return top(cmd.Context(), s) }
			if once {
				return look()
			}
			return session.Watch(cmd.Context(), s, interval, look)
		}, nil
	})
	session.Within(cmd, session.LookTimeout)
	term.DurationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "time between two looks")
	cmd.Flags().BoolVar(&once, "once", false, "look once")
	return cmd
}

// top shows the data once. It leaves out parts that the key may not see, unless that is everything.
func top(ctx context.Context, s session.Talk) error {
	query, refused := "", 0
	parts := []func() error{
		func() error {
			return session.Ask(ctx, s, session.Get("/api/cluster"), func(answer *wire.Cluster) error {
				if answer.Leader == "" {
					query = "&consistency=stale" // a node's own state is better than none
				}
				return operate.ShowCluster(s.App, answer)
			})
		},
		func() error {
			path := "/api/types?order=pending&limit=" + strconv.Itoa(topRows) + query
			return session.Ask(ctx, s, session.Get(path), func(answer *wire.Types) error {
				return cli.ShowTypes(s.App, answer)
			})
		},
		func() error {
			path := "/api/workers"
			if query != "" {
				path += "?" + query[1:]
			}
			return session.Ask(ctx, s, session.Get(path), func(answer *wire.Workers) error {
				return cli.ShowWorkers(s.App, answer.Workers, topRows)
			})
		},
	}
	for i, part := range parts {
		if i > 0 && s.Flags.Output != "json" {
			fmt.Fprintln(s.App.Stdout)
		}
		err := part()
		var refusal *client.Error
		switch {
		case errors.As(err, &refusal) && refusal.Status == http.StatusForbidden:
			if refused++; refused == len(parts) {
				return err
			}
			if s.Flags.Output != "json" {
				fmt.Fprintln(s.App.Stdout, term.ErrorText(nil, err))
			}
		case err != nil:
			return err
		}
	}
	return nil
}
