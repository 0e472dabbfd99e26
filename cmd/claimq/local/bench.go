package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/bench"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type benchOptions struct {
	bench.Config
	mode   string
	nodes  int
	noRaft bool
	output string
}

// NewBenchCommand returns the command `claimq bench`.
func NewBenchCommand(a *term.App) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a cluster under load",
		Long: `Measure a cluster under load, and check that each task was done exactly once.

With --nodes it starts a cluster of its own in a temporary folder; otherwise it
drives the one at --endpoint, and sends the load to the node that leads. It uses
task types of its own and leaves its completed tasks behind.

Modes: submit submits only; drain submits first and then measures claims and
completes; lifecycle has each connection submit, claim and complete in turn; chain
has it submit, and complete what it holds with a claim of the next in the same call;
latency is lifecycle on one connection.

With --client it measures the Go client in place of connections of its own: as many
goroutines submit as --conns says, while one Worker of so many slots claims and
completes.`,
		Example: `  claimq bench --nodes 3 --conns 64
  claimq bench --nodes 3 --mode chain
  claimq bench --nodes 3 --client --conns 256
  claimq bench --no-raft --conns 256
  claimq bench --endpoint http://127.0.0.1:7400 --mode latency --tasks 2000 --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Mode = bench.Mode(o.mode)
			return runBench(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", string(bench.Lifecycle), "submit, drain, lifecycle, chain or latency")
	f.IntVar(&o.Conns, "conns", 64, "connections, each with one call under way")
	f.IntVar(&o.Tasks, "tasks", 100_000, "tasks in all")
	f.IntVar(&o.Payload, "payload", 256, "bytes of params a task")
	f.IntVar(&o.Batch, "batch", 1, "tasks a submit, a claim and a batch of completes")
	f.BoolVar(&o.Client, "client", false, "have the Go client and its Worker do the work (modes submit, drain, lifecycle)")
	f.BoolVar(&o.RequestIDs, "request-ids", true, "give each claim a claim_request_id, as the Go client does")
	term.DurationVar(f, &o.WarmUp, "warm-up", time.Second, "how long to work before counting")
	f.IntVar(&o.nodes, "nodes", 0, "start a cluster of this many nodes; 0: use --endpoint")
	f.BoolVar(&o.noRaft, "no-raft", false, "start one node that serves from memory without a log, for the ratio")
	f.StringSliceVar(&o.Endpoints, "endpoint", nil, "URL of a node; repeatable (CLAIMQ_ENDPOINTS; default http://127.0.0.1:7400)")
	f.StringVar(&o.output, "output", "table", "table or json")
	return cmd
}

func runBench(ctx context.Context, a *term.App, o benchOptions) error {
	if o.output != "table" && o.output != "json" {
		return term.UsageErrorf("--output is %q: it must be table or json", o.output)
	}
	if o.nodes < 0 || o.nodes > devNodesMax {
		return term.UsageErrorf("--nodes is %d: it must be 0 to %d", o.nodes, devNodesMax)
	}
	own := o.noRaft || o.nodes > 0
	if own && len(o.Endpoints) > 0 {
		return term.UsageErrorf("--endpoint goes with neither --nodes nor --no-raft: they start their own cluster")
	}
	if own {
		o.Endpoints = []string{"http://127.0.0.1"} // its own cluster, once it runs
	} else if len(o.Endpoints) == 0 {
		o.Endpoints = benchEndpoints(a)
	}
	for i, e := range o.Endpoints {
		o.Endpoints[i] = strings.TrimRight(strings.TrimSpace(e), "/")
		if !strings.HasPrefix(o.Endpoints[i], "http://") && !(o.Client && strings.HasPrefix(o.Endpoints[i], "https://")) {
			return term.UsageErrorf("--endpoint is %q: it must begin with http://; only the Go client, with --client, speaks TLS", e)
		}
	}
	if err := o.Validate(); err != nil {
		return term.UsageErrorf("%w", err)
	}
	if own {
		if a.RelaxTimers != nil {
			a.RelaxTimers() // the load shares the processors with the nodes
		}
		c, remove, err := startBenchCluster(ctx, o)
		if err != nil {
			return err
		}
		defer remove()
		defer c.stop()
		o.Endpoints = nil
		for _, n := range c.nodes {
			o.Endpoints = append(o.Endpoints, n.url)
		}
		// The load uses half of the processors and leaves the rest to the nodes.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)))
	}
	report, err := bench.Run(ctx, o.Config)
	if err != nil {
		return err
	}
	if err := printBench(a, report, o.output); err != nil {
		return err
	}
	if report.Doubled > 0 || report.Lost > 0 {
		return errors.New("the count does not add up: tasks were done twice or lost")
	}
	return nil
}

func printBench(a *term.App, r bench.Report, output string) error {
	if output == "table" {
		return r.Print(a.Stdout)
	}
	e := json.NewEncoder(a.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// startBenchCluster starts nodes in a temporary folder. The caller stops the
// cluster and then calls remove.
func startBenchCluster(ctx context.Context, o benchOptions) (c *localCluster, remove func(), err error) {
	dir, err := os.MkdirTemp("", "claimq-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the cluster: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // a left-over temporary folder does no harm
	binary, err := os.Executable()
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("find our own executable: %w", err)
	}
	local := localOptions{binary: binary, dir: dir, count: max(1, o.nodes), extra: []string{"--log-level", "warn"}}
	if o.noRaft {
		local.count = 1
		local.extra = append(local.extra, "--no-raft")
	}
	if c, err = startLocalCluster(local); err != nil {
		remove()
		return nil, nil, err
	}
	readyCtx, cancel := context.WithTimeout(ctx, devReadyTimeout)
	defer cancel()
	if err := c.waitReady(readyCtx); err != nil {
		c.stop()
		remove()
		return nil, nil, err
	}
	return c, remove, nil
}

func benchEndpoints(a *term.App) []string {
	if list := a.Getenv("CLAIMQ_ENDPOINTS"); list != "" {
		return strings.Split(list, ",")
	}
	return []string{"http://127.0.0.1:7400"}
}
