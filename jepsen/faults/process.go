package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

const (
	// stopTimeout bounds an orderly end: a transfer of the leadership takes up to 5 s.
	stopTimeout = 20 * time.Second
	// readyTimeout bounds the wait for a restarted node before the next one goes. During
	// other faults it may not become ready.
	readyTimeout = 20 * time.Second
	// snapshotKillMax bounds the delay of the kill after the request for snapshots: about
	// the time of a snapshot in a run.
	snapshotKillMax = 150 * time.Millisecond
)

// killed kills the nodes with SIGKILL until recover starts them again.
func killed(_ context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	c.notef("kill -9 %s", names(nodes))
	start := func(context.Context) error { return c.startNodes(nodes...) }
	if err := procs.KillAll(nodes...); err != nil {
		return nil, errors.Join(err, c.startNodes(nodes...))
	}
	return start, nil
}

// snapshotKilled requests snapshots of all nodes and kills the nodes meanwhile.
func snapshotKilled(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
	after := time.Duration(rng.Int63n(int64(snapshotKillMax)))
	asking, cancel := context.WithTimeout(ctx, snapshotKillMax+time.Second)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = c.operate(asking, "/api/snapshots", "") }) // its answer may be lost with the node
	select {
	case <-ctx.Done():
	case <-time.After(after):
	}
	c.notef("snapshots are asked for, %v later:", after.Round(time.Millisecond))
	return killed(ctx, c, nodes, rng)
}

// paused stops the nodes until recover lets them go on.
func paused(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
	c.notef("pause %s", names(nodes))
	resume, err := stopped(ctx, c, nodes, rng)
	return func(ctx context.Context) error {
		c.notef("%s go on", names(nodes))
		return resume(ctx)
	}, err
}

// stopped sends SIGSTOP and later SIGCONT. Repeatedly, it simulates a node with little of a
// processor, as under a quota.
func stopped(ctx context.Context, _ *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	resume := func(context.Context) error { return each(nodes, (*procs.Node).Continue) }
	if err := each(nodes, (*procs.Node).Pause); err != nil {
		return nil, errors.Join(err, resume(ctx))
	}
	return resume, nil
}

// restarted restarts one node after the other with SIGTERM.
func restarted(ctx context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	for _, n := range nodes {
		c.notef("restart %s", n.ID)
		if err := restart(ctx, c, n); err != nil {
			return nil, errors.Join(err, c.startNodes(nodes...))
		}
	}
	return func(context.Context) error { return c.startNodes(nodes...) }, nil
}

// restart ends the node, starts it, and waits a while for it to become ready.
func restart(ctx context.Context, c *Cluster, n *procs.Node) error {
	if err := errors.Join(c.end(ctx, n), c.startNodes(n)); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := n.WaitReady(starting); err != nil {
		c.notef("%s is not ready yet", n.ID)
	}
	return ctx.Err()
}

// end ends the node in an orderly way, or by SIGKILL if that fails.
func (c *Cluster) end(ctx context.Context, n *procs.Node) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		return procs.KillAll(n)
	}
	c.exited(n)
	return nil
}

// amid asks a node to end while a client is stuck in the middle of a request. The node must
// end in time all the same, with the exit code of success.
func amid(ctx context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	n := nodes[0]
	client, err := c.connect(ctx, n.HTTPAddr)
	if err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintf(client, "POST /api/tasks HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\nContent-Length: 100\r\n\r\n{", n.HTTPAddr, c.key); err == nil {
		c.notef("%s is asked to stop amid a request", n.ID)
		err = n.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return func(ctx context.Context) error {
		defer func() { _ = client.Close() }() // the node may have been first
		patient, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		if err := n.WaitExit(patient); err != nil {
			c.notef("%s does not stop", n.ID)
			// Its exit code tells that it hangs, its log where.
			if err := errors.Join(n.Signal(syscall.SIGQUIT), n.WaitExit(ctx)); err != nil {
				return err
			}
		}
		c.exited(n)
		return c.startNodes(n)
	}, nil
}

// each calls do for all nodes. It ignores nodes that do not run, because another fault may
// have ended them.
func each(nodes []*procs.Node, do func(*procs.Node) error) error {
	var errs []error
	for _, n := range nodes {
		if err := do(n); !errors.Is(err, procs.ErrNotRunning) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// startNodes starts those of the nodes that do not run and have power. A fault that takes
// the power away gives it back, and then starts the node.
func (c *Cluster) startNodes(nodes ...*procs.Node) error {
	var errs []error
	for _, n := range nodes {
		if n.Running() || c.Disks != nil && !c.disk(n).Powered() {
			continue
		}
		switch err := n.Start(); {
		case err == nil:
			c.notef("start %s", n.ID)
		case !errors.Is(err, procs.ErrRunning): // another fault has been quicker
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
