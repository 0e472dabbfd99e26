package faults

import (
	"context"
	"errors"
	"math/rand"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// process is a fault of the nodes' processes.
type process struct {
	name string
	act  func(c *Cluster, nodes []*procs.Node) (recover func(context.Context) error, err error)
	pick picker
}

func (p process) Name() string                       { return p.name }
func (p process) Needs() (root bool, tools []string) { return false, nil }

func (p process) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	return p.act(c, p.pick(ctx, c, rng))
}

// kill kills the nodes with SIGKILL until recover starts them again.
func kill(c *Cluster, nodes []*procs.Node) (func(context.Context) error, error) {
	c.notef("kill -9 %s", names(nodes))
	if err := killAll(nodes); err != nil {
		return nil, errors.Join(err, c.startNodes(nodes))
	}
	return func(context.Context) error { return c.startNodes(nodes) }, nil
}

// killAll kills the nodes at once and waits until they are gone. Those that do
// not run are left alone.
func killAll(nodes []*procs.Node) error {
	var errs []error
	for _, n := range nodes {
		errs = append(errs, signalKill(n))
	}
	for _, n := range nodes {
		waitGone(n)
	}
	return errors.Join(errs...)
}

// signalKill kills the node and does not wait for it.
func signalKill(n *procs.Node) error { return ifRunning(n.Signal(syscall.SIGKILL)) }

// waitGone waits until a node that was killed is gone.
func waitGone(n *procs.Node) {
	if exited := n.Exited(); exited != nil {
		<-exited
	}
}

// pause stops the nodes until recover lets them go on.
func pause(c *Cluster, nodes []*procs.Node) (func(context.Context) error, error) {
	c.notef("pause %s", names(nodes))
	resume := func(context.Context) error {
		c.notef("%s go on", names(nodes))
		var errs []error
		for _, n := range nodes {
			errs = append(errs, ifRunning(n.Continue()))
		}
		return errors.Join(errs...)
	}
	for _, n := range nodes {
		if err := ifRunning(n.Pause()); err != nil {
			return nil, errors.Join(err, resume(context.Background()))
		}
	}
	return resume, nil
}

// startNodes starts those of the nodes that do not run and have power.
func (c *Cluster) startNodes(nodes []*procs.Node) error {
	var errs []error
	for _, n := range nodes {
		if n.Running() || !c.powered(n) {
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

// powered reports whether the node has power. Who takes it away gives it back,
// and starts the node then.
func (c *Cluster) powered(n *procs.Node) bool {
	return c.Disks == nil || c.disk(n).Powered()
}

// ifRunning forgives that a node does not run: another fault may have ended
// it.
func ifRunning(err error) error {
	if errors.Is(err, procs.ErrNotRunning) {
		return nil
	}
	return err
}

// rolling restarts one node after the other, each with SIGTERM.
type rolling struct{}

func (rolling) Name() string                       { return "rolling-restart" }
func (rolling) Needs() (root bool, tools []string) { return false, nil }

const (
	// stopTimeout bounds an orderly end: handing leadership over takes up to 5 s.
	stopTimeout = 20 * time.Second
	// readyTimeout bounds the wait for a restarted node before the next one goes.
	// Beside other faults it may not become ready.
	readyTimeout = 20 * time.Second
)

func (rolling) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	nodes := shuffled(c, rng)
	start := func(context.Context) error { return c.startNodes(nodes) }
	for _, n := range nodes {
		c.notef("restart %s", n.ID)
		if err := restart(ctx, c, n); err != nil {
			return nil, errors.Join(err, start(ctx))
		}
	}
	return start, nil
}

// restart ends the node in an orderly way, or by SIGKILL if it does not end,
// starts it, and waits a while for it to be ready.
func restart(ctx context.Context, c *Cluster, n *procs.Node) error {
	stopping, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := n.Stop(stopping); err != nil {
		if err := killAll([]*procs.Node{n}); err != nil {
			return err
		}
	}
	if err := c.startNodes([]*procs.Node{n}); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := n.WaitReady(starting); err != nil {
		c.notef("%s is not ready yet", n.ID)
	}
	return ctx.Err()
}
