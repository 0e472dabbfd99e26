package operate

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/cmd/claimq/top"
)

// These are the bounds of --interval.
const (
	topIntervalMin = 200 * time.Millisecond
	topIntervalMax = time.Minute
)

// topTimeout is the time for one request unless --timeout says otherwise. It is short, so that top soon asks another
// node when one hangs.
const topTimeout = 2 * time.Second

type topOptions struct {
	session.Flags
	interval time.Duration
	types    []string
	once     bool
}

// NewTopCommand returns the command `claimq top`.
func NewTopCommand(a *term.App) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch types, rates, workers and nodes",
		Long: `Watch the cluster: who leads, how many tasks there are, how many are submitted,
claimed and settled a second, the task types, the workers and the nodes. q ends it, ?
explains the keys. It goes on when nodes die, and asks the others, also those that
--endpoint does not name.

--once prints one frame, as is done where there is no terminal. With --output json each
look is a line. Where there are keys it takes one with the role operator; with less it
shows what the key may see.`,
		Example: "  claimq top\n  claimq top --type mail --type 'img-*' --interval 5s\n  claimq top --once\n  claimq top --output json | jq .rates",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.interval < topIntervalMin || o.interval > topIntervalMax {
				return term.UsageErrorf("--interval is %v: it must be %v to %v", o.interval, topIntervalMin, topIntervalMax)
			}
			return watchTop(cmd.Context(), a, &o)
		},
	}
	session.AddFlags(a, cmd, &o.Flags)
	f := cmd.Flags()
	o.Timeout = topTimeout
	timeout, output := f.Lookup("timeout"), f.Lookup("output")
	timeout.DefValue, timeout.Usage = topTimeout.String(), "how long one request may take"
	output.Usage = "table, json: a line of JSON for each look"
	f.DurationVar(&o.interval, "interval", time.Second, "time between two looks")
	f.StringSliceVar(&o.types, "type", nil, "only these task types; mail* is all that begin so; repeatable")
	f.BoolVar(&o.once, "once", false, "print one frame and end")
	return cmd
}

// watchTop looks once, so that it can report mistakes as other commands do. Then it shows the view.
func watchTop(ctx context.Context, a *term.App, o *topOptions) error {
	cfg, err := o.topConfig()
	if err != nil {
		return err
	}
	source := top.NewSource(cfg)
	defer source.Close()
	first := source.Look(ctx)
	if first.Err != nil {
		return topError(first.Err)
	}
	options := top.Options{Interval: o.interval, Filter: o.types, Colours: a.Getenv("NO_COLOR") == ""}
	if o.Output == "json" {
		return top.Stream(ctx, a.Stdout, source, first, o.once, options)
	}
	in, _ := a.Stdin.(*os.File)
	out, _ := a.Stdout.(*os.File)
	if out != nil && term.IsTerminal(out) && !o.once && in != nil && term.IsTerminal(in) && a.Getenv("TERM") != "dumb" {
		return top.Run(ctx, source, first, in, out, options)
	}
	return top.Print(ctx, a.Stdout, source, first, a.Width, options)
}

func (o *topOptions) topConfig() (top.Config, error) {
	cfg := top.Config{Timeout: o.Timeout}
	for _, e := range o.Endpoints {
		if e = strings.TrimRight(strings.TrimSpace(e), "/"); e != "" {
			cfg.Endpoints = append(cfg.Endpoints, e)
		}
	}
	if len(cfg.Endpoints) == 0 {
		return cfg, term.UsageErrorf("--endpoint is empty")
	}
	var err error
	if cfg.TLS, err = o.TLS.Renewed(); err != nil {
		return cfg, term.UsageErrorf("%w", err)
	}
	if cfg.APIKey, err = o.KeySource(); err != nil {
		return cfg, err
	}
	// The client knows the valid forms of an endpoint and a key.
	c, err := client.New(client.Config{Endpoints: cfg.Endpoints, APIKey: o.APIKey, APIKeyFile: o.KeyFile})
	if err != nil {
		return cfg, term.UsageErrorf("%w", err)
	}
	return cfg, c.Close()
}

// topError puts a failed first look into the words of the other commands.
func topError(err error) error {
	var r *top.Refusal
	if !errors.As(err, &r) {
		return &term.CallError{Err: err}
	}
	return &term.CallError{Err: &client.Error{Status: r.Status, Code: string(r.Code), Text: r.Text, Advice: r.Advice}}
}
