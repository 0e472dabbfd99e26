package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// devReadyTimeout bounds how long the nodes may take to find a leader.
const devReadyTimeout = 30 * time.Second

// devNodesMax bounds --nodes: more than seven only make every write slower.
const devNodesMax = 7

type devOptions struct {
	nodes    int
	dataDir  string
	basePort int
	restart  bool
}

func newDevCommand(a *app) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a local cluster of child processes until Ctrl-C",
		Long: `Run a local cluster of child processes until Ctrl-C.

Each node is a process of its own with its own folder, so that one can be killed
(kill -9 PID) to see what happens. A node that ends is reported and stays down,
unless --restart is given. The data stays in --data-dir for the next time.`,
		Example: `  claimq dev
  claimq dev --nodes 5 --data-dir /tmp/q --restart`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDev(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 3, "number of nodes, 1 to 7; an odd one makes sense")
	f.StringVar(&o.dataDir, "data-dir", "./claimq-data", "folder for all nodes' data and logs")
	f.IntVar(&o.basePort, "port", 7400, "port of the first node's API; the next nodes have 10, 20, ... more, peer ports are one above")
	f.BoolVar(&o.restart, "restart", false, "start a node again when it ends")
	return cmd
}

func runDev(ctx context.Context, a *app, o devOptions) error {
	if o.nodes < 1 || o.nodes > devNodesMax {
		return usageErrorf("--nodes is %d: it must be 1 to %d", o.nodes, devNodesMax)
	}
	if o.basePort < 1 || o.basePort+10*o.nodes > 65535 {
		return usageErrorf("--port is %d: it must leave room for %d nodes below 65535", o.basePort, o.nodes)
	}
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	c, err := startLocalCluster(localOptions{binary: binary, dir: o.dataDir, count: o.nodes, basePort: o.basePort})
	if err != nil {
		return err
	}
	defer c.stop()
	readyCtx, cancel := context.WithTimeout(ctx, devReadyTimeout)
	defer cancel()
	if err := c.waitReady(readyCtx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C while starting
		}
		return err
	}
	for _, n := range c.nodes {
		fmt.Fprintf(a.stdout, "%s  %s  pid %d  log %s\n", n.id, n.url, n.process.Pid, n.logPath)
	}
	leader := c.printLeader(ctx, a, "")
	fmt.Fprintf(a.stdout, "try: claimq submit hello '{\"to\":\"world\"}' --endpoint %s   Ctrl-C stops all nodes.\n", c.nodes[0].url)
	return c.watch(ctx, a, leader, o.restart)
}

// watch reports nodes that end and changes of leader until ctx ends.
func (c *localCluster) watch(ctx context.Context, a *app, leader string, restart bool) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	alive := len(c.nodes)
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(a.stdout, "stopping")
			return nil
		case <-tick.C:
			leader = c.printLeader(ctx, a, leader)
		case n := <-c.exits:
			fmt.Fprintf(a.stdout, "%s (pid %d) has ended: %v; its log ends with: %s\n", n.id, n.process.Pid, exitError(n.exit), lastLine(n.logPath))
			if !restart {
				alive--
				if alive == 0 {
					return errors.New("no node is left")
				}
				continue
			}
			if err := c.start(n); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is started again: pid %d\n", n.id, n.process.Pid)
		}
	}
}

// printLeader prints the leader if it is another than before, and returns it.
func (c *localCluster) printLeader(ctx context.Context, a *app, before string) string {
	for _, n := range c.nodes {
		cl, err := clusterOf(ctx, n.url)
		if err != nil || cl.Leader == "" {
			continue
		}
		if cl.Leader != before {
			fmt.Fprintf(a.stdout, "leader: %s\n", cl.Leader)
		}
		return cl.Leader
	}
	return before
}
