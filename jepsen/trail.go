package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/procs"
)

// levelWait bounds how long a follower may take for what the load has left.
const levelWait = 30 * time.Second

// runTrail measures on three real nodes what followers of the trail at the leader cost
// the load beside them.
func runTrail(ctx context.Context, c *call) error {
	m := measuring{out: c.out}
	c.onNodes()
	followers := c.Int("followers", 100, "followers of the whole trail, at the leader")
	plain := c.Bool("plain", false, "they do not accept gzip, as the first of them never does")
	m.flags(c, 5)
	return c.with(ctx, func() bool { return m.pairs > 0 && *followers > 0 }, func(nodes *procs.Cluster) error {
		m.binary, m.nodes = c.binary, nodes
		return m.beside(ctx, fmt.Sprintf("%d followers", *followers), func(ctx context.Context) (func() (string, error), error) {
			leader, err := nodes.WaitLeader(ctx)
			if err != nil {
				return nil, err
			}
			var all crowd
			var events atomic.Int64
			for i := range *followers {
				if err := follow(&all, leader, *plain || i == 0, i == 0, &events); err != nil {
					all.close()
					return nil, err
				}
			}
			return func() (string, error) {
				defer all.close()
				// Each task of the load leaves three events, also in its warm-up.
				err := within(ctx, levelWait, func(ctx context.Context) error { return came(ctx, &events, int64(3*m.tasks)) })
				return fmt.Sprintf(", of whom each got %d events", events.Load()), err
			}, nil
		})
	}, "--log-level", "warn")
}

// follow follows the whole trail at the node from now on, and drops what comes, or counts
// its events.
func follow(w *crowd, n *procs.Node, plain, counts bool, events *atomic.Int64) error {
	rest := "Accept: text/event-stream\r\n"
	if !plain {
		rest += "Accept-Encoding: gzip\r\n"
	}
	answered := make(chan string, 1)
	err := w.join(n, "GET /api/events", rest+"\r\n", func(_ net.Conn, in *bufio.Reader) {
		line, err := in.ReadString('\n')
		for answered <- line; counts && err == nil; line, err = in.ReadString('\n') {
			if strings.HasPrefix(line, "data: ") {
				events.Add(1)
			}
		}
		_, _ = io.Copy(io.Discard, in) // until it is closed
	})
	if err != nil {
		return err
	}
	if line := <-answered; !strings.HasPrefix(line, "HTTP/1.1 200") {
		return fmt.Errorf("%s answers a follower of the trail %q", n.ID, line)
	}
	return nil
}

// came waits until so many events have come.
func came(ctx context.Context, events *atomic.Int64, least int64) error {
	for events.Load() < least {
		if !pause.For(ctx, 10*time.Millisecond) {
			return fmt.Errorf("a follower got %d of %d events: %w", events.Load(), least, ctx.Err())
		}
	}
	return nil
}
