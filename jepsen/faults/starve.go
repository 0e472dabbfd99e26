package faults

import (
	"context"
	"errors"
	"math/rand"
	"net"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

const (
	// fewestFiles is the number of files that a starved node may open, and crowdMax the number
	// of idle connections to it.
	fewestFiles, crowdMax = 256, 300
	// crowdTimeout bounds the dial of one of them.
	crowdTimeout = time.Second
	// electMax bounds the time without a leader while a majority is healthy.
	electMax = 15 * time.Second
)

// unread stops reading the nodes' logs.
func unread(_ context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	c.notef("nobody reads the log of %s", names(nodes))
	resume := func(context.Context) error { return each(nodes, (*procs.Node).GoOnReading) }
	if err := each(nodes, (*procs.Node).StopReading); err != nil {
		return nil, errors.Join(err, resume(context.Background()))
	}
	return resume, nil
}

// electing applies do to all nodes and kills the leader: the others must elect another one all
// the same, and write about it in their logs.
func electing(do act) act {
	return func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
		over, err := do(ctx, c, c.Nodes, rng)
		if err != nil {
			return nil, err
		}
		done := undos{over}
		start, err := killed(ctx, c, nodes, rng)
		if err == nil {
			done = append(done, start)
			electing, cancel := context.WithTimeout(ctx, electMax)
			defer cancel()
			_, err = c.WaitLeader(electing, nodes...)
		}
		if err != nil {
			return nil, errors.Join(err, done.all(context.WithoutCancel(ctx)))
		}
		return done.all, nil
	}
}

// broken closes the pipes of the nodes' logs. The nodes go on without a log.
func broken(_ context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	c.notef("the log of %s breaks", names(nodes))
	err := each(nodes, (*procs.Node).BreakLog)
	return func(context.Context) error { return nil }, err
}

// fewFiles starts a node with a low limit of open files, and takes them all by connections.
func fewFiles(ctx context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	n := nodes[0]
	again := func(ctx context.Context, files int) error {
		if err := c.end(ctx, n); err != nil {
			return err
		}
		n.SetFiles(files)
		return c.startNodes(n)
	}
	if err := again(ctx, fewestFiles); err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := n.WaitReady(starting); err != nil {
		c.notef("%s is not ready yet", n.ID)
	}
	crowd := c.crowd(ctx, n.HTTPAddr)
	c.notef("%s may open %d files, and has %d connections", n.ID, fewestFiles, len(crowd))
	return func(ctx context.Context) error {
		for _, conn := range crowd {
			_ = conn.Close() // the node may have been first
		}
		return again(ctx, 0)
	}, nil
}

// crowd connects to the node as often as it accepts, at most crowdMax times.
func (c *Cluster) crowd(ctx context.Context, addr string) (crowd []net.Conn) {
	for range crowdMax {
		conn, err := c.connect(ctx, addr)
		if err != nil {
			break
		}
		crowd = append(crowd, conn)
	}
	return crowd
}

// connect connects to a node's API like a caller.
func (c *Cluster) connect(ctx context.Context, addr string) (net.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, crowdTimeout)
	defer cancel()
	return dial(ctx, "tcp", addr)
}
