package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// devReadyTimeout bounds how long the nodes may take to elect a leader.
const devReadyTimeout = 30 * time.Second

// devLeaderFile is the file in the data folder with the leader's process id, for kill -9 $(cat FILE). It does not
// exist while the leader is unknown.
const devLeaderFile = "leader.pid"

// devLook is the interval of checks for the leader, and the least time between restarts of a node.
const devLook = time.Second

// devNodesMax bounds --nodes, because more than seven only make every write slower.
const devNodesMax = 7

type devOptions struct {
	nodes    int
	dataDir  string
	basePort int
	restart  bool
	sqs      bool
}

// NewDevCommand returns the command `claimq dev`.
func NewDevCommand(a *term.App) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a local cluster of child processes until Ctrl-C",
		Long: `Run a local cluster of child processes until Ctrl-C.

Each node is a process with its own folder, so that you can kill one (kill -9 PID)
and see what happens. The file leader.pid in --data-dir has the leader's pid. A node
that exits is reported and stays down unless --restart is given. The nodes stop with
this command, however it ends. The data stays in --data-dir for the next time.`,
		Example: `  claimq dev
  claimq dev --nodes 5 --data-dir /tmp/q --restart
  claimq dev --sqs-enabled`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDev(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 3, "number of nodes, 1 to 7; an odd one makes sense")
	f.StringVar(&o.dataDir, "data-dir", "./claimq-data", "folder for all nodes' data and logs")
	f.IntVar(&o.basePort, "port", 7400, "port of the first node's API; the next nodes have 10, 20, ... more, peer ports are one above")
	f.BoolVar(&o.restart, "restart", false, "restart a node that exits")
	f.BoolVar(&o.sqs, "sqs-enabled", false, "answer clients of Amazon SQS, whatever they sign with, on the ports of the API")
	return cmd
}

func runDev(ctx context.Context, a *term.App, o devOptions) error {
	if o.nodes < 1 || o.nodes > devNodesMax {
		return term.UsageErrorf("--nodes is %d: it must be 1 to %d", o.nodes, devNodesMax)
	}
	if o.basePort < 1 || o.basePort+10*o.nodes > 65535 {
		return term.UsageErrorf("--port is %d: it must leave room for %s below 65535", o.basePort, term.Count(o.nodes, "node"))
	}
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	lock, err := lockFolder(o.dataDir)
	if errors.Is(err, errFolderInUse) {
		return fmt.Errorf("%w: stop it, or choose another folder with --data-dir and other ports with --port", err)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	file := filepath.Join(o.dataDir, devLeaderFile)
	if err := removeIfThere(file); err != nil { // left by a cluster that was killed
		return err
	}
	local := localOptions{binary: binary, dir: o.dataDir, count: o.nodes, basePort: o.basePort}
	if o.sqs {
		local.extra = append(local.extra, "--sqs-enabled")
	}
	c, err := startLocalCluster(local)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: stop the process that has it, or choose other ports with --port (%d to %d are needed)", err, o.basePort, o.basePort+10*o.nodes-9)
	}
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
		fmt.Fprintf(a.Stdout, "%s  %s  pid %d  log %s\n", n.id, n.url, n.process.Pid, n.logPath)
	}
	w := devWatch{c: c, a: a, file: file, restart: o.restart}
	if err := w.lookForLeader(ctx); err != nil {
		return err
	}
	urls := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		urls[i] = n.url
	}
	fmt.Fprintf(a.Stdout, "export CLAIMQ_ENDPOINTS=%s\n", strings.Join(urls, ","))
	fmt.Fprintln(a.Stdout, "Type that line in another terminal and try: claimq submit hello '{\"to\":\"world\"}'   Ctrl-C stops all nodes.")
	return errors.Join(w.run(ctx), removeIfThere(file))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// devWatch reports nodes that end and changes of the leader.
type devWatch struct {
	c       *localCluster
	a       *term.App
	file    string       // has the leader's pid
	restart bool         // restart nodes that end
	leader  string       // the last one reported; "": none, or it has ended
	fallen  []*localNode // they have ended, and are restarted at the next look
}

// run watches until ctx ends.
func (w *devWatch) run(ctx context.Context) error {
	tick := time.NewTicker(devLook)
	defer tick.Stop()
	alive := len(w.c.nodes)
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(w.a.Stdout, "stopping")
			return nil
		case <-tick.C:
			if err := errors.Join(w.startFallen(), w.lookForLeader(ctx)); err != nil {
				return err
			}
		case n := <-w.c.exits:
			if err := w.ended(n); err != nil {
				return err
			}
			if !w.restart {
				alive--
			}
			if alive == 0 {
				return errors.New("no node is left")
			}
		}
	}
}

// ended reports that the node has ended, and notes it if it is to be restarted.
func (w *devWatch) ended(n *localNode) error {
	fmt.Fprintf(w.a.Stdout, "%s (pid %d) has ended: %v; its log ends with: %s\n", n.id, n.process.Pid, exitError(n.exit), lastLine(n.logPath))
	if n.id == w.leader {
		w.leader = ""
		if err := removeIfThere(w.file); err != nil {
			return err
		}
	}
	if !w.restart {
		n.down = true
		return nil
	}
	w.fallen = append(w.fallen, n)
	return nil
}

// startFallen restarts the nodes that have ended since the last look.
func (w *devWatch) startFallen() error {
	for _, n := range w.fallen {
		if err := w.c.start(n); err != nil {
			return err
		}
		fmt.Fprintf(w.a.Stdout, "%s is started again: pid %d\n", n.id, n.process.Pid)
	}
	w.fallen = nil
	return nil
}

// lookForLeader reports a new leader. It ignores one that has ended, which the others believe in until they have
// elected another.
func (w *devWatch) lookForLeader(ctx context.Context) error {
	for _, n := range w.c.nodes {
		cl, err := clusterOf(ctx, n.url)
		i := slices.IndexFunc(w.c.nodes, func(n *localNode) bool { return n.id == cl.Leader && !n.down })
		if err != nil || i < 0 {
			continue
		}
		if cl.Leader == w.leader {
			return nil
		}
		w.leader = cl.Leader
		if err := os.WriteFile(w.file, []byte(strconv.Itoa(w.c.nodes[i].process.Pid)+"\n"), 0o600); err != nil {
			return fmt.Errorf("write the leader's pid: %w", err)
		}
		fmt.Fprintf(w.a.Stdout, "leader: %s\n", w.leader)
		return nil
	}
	return nil
}
