package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/claimq/claimq/cmd/claimq/bench"
	"github.com/claimq/claimq/internal/procs"
)

// runTrail measures how much followers of the trail at the leader cost the load, on three
// real nodes.
func runTrail(ctx context.Context, c *call) error {
	m := measuring{out: c.out}
	c.onNodes(&c.plant)
	followers := c.Int("followers", 100, "followers of the whole trail, at the leader")
	m.flags(c, 5)
	return c.with(ctx, func() bool { return m.pairs > 0 && *followers > 0 }, func(nodes *procs.Cluster) error {
		m.binary, m.nodes = c.binary, nodes
		return m.compare(ctx, fmt.Sprintf("%d followers", *followers), bench.Lifecycle, func(ctx context.Context) (func() (string, error), error) {
			leader, err := nodes.WaitLeader(ctx)
			if err != nil {
				return nil, err
			}
			ctx, leave := context.WithCancel(ctx)
			var events atomic.Int64
			var following sync.WaitGroup
			end := func() {
				leave()
				following.Wait()
			}
			for i := range *followers {
				told, err := follow(ctx, leader)
				if err != nil {
					end()
					return nil, err
				}
				following.Go(func() { read(told, i == 0, &events) })
			}
			return func() (string, error) {
				defer end()
				least := 3 * m.tasks // which each task of the load leaves, also in its warm-up
				err := counted(ctx, "events came to a follower", least, func(context.Context) (float64, error) {
					return float64(min(events.Load(), int64(least))), nil
				})
				return fmt.Sprintf(", of whom each got %d events", events.Load()), err
			}, nil
		})
	}, "--log-level", "warn")
}

// follow follows the whole trail at the node from now on, until ctx ends, and returns the
// stream.
func follow(ctx context.Context, n *procs.Node) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL()+"/api/events", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers a follower of the trail: status %d", n.ID, resp.StatusCode), resp.Body.Close())
	}
	return resp.Body, nil
}

// read reads the stream to its end, and counts its events if asked to.
func read(told io.ReadCloser, counts bool, events *atomic.Int64) {
	defer func() { _ = told.Close() }()
	for lines := bufio.NewScanner(told); counts && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			events.Add(1)
		}
	}
	_, _ = io.Copy(io.Discard, told)
}
