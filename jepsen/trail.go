package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// runTrail measures on three real nodes what followers of the trail cost the
// load beside them.
func runTrail(ctx context.Context, c *call) error {
	m := measuring{out: c.out}
	c.onNodes()
	followers := c.Int("followers", 100, "followers of the whole trail")
	at := c.String("at", "leader", "the nodes that they follow at: leader, followers or all")
	plain := c.Bool("plain", false, "they do not accept gzip, as the first of them never does")
	m.flags(c, 5)
	if err := c.parse(func() bool {
		return slices.Contains([]string{"leader", "followers", "all"}, *at) && m.pairs > 0 && *followers > 0
	}); err != nil {
		return err
	}
	return c.with(ctx, 3, func(nodes *procs.Cluster) error {
		m.binary, m.nodes = c.binary, nodes
		return m.beside(ctx, fmt.Sprintf("%d followers at %s", *followers, *at), func(ctx context.Context) (func() (string, error), error) {
			leader, err := nodes.WaitLeader(ctx)
			if err != nil {
				return nil, err
			}
			of := slices.DeleteFunc(slices.Clone(nodes.Nodes), func(n *procs.Node) bool {
				return *at == "leader" && n != leader || *at == "followers" && n == leader
			})
			var crowd trailCrowd
			end := func() (string, error) {
				defer crowd.close()
				// Each task of the load leaves three events, also in its warm-up.
				err := crowd.level(ctx, int64(3*m.tasks))
				return fmt.Sprintf(", of whom each got %d events, all %.1f MB", crowd.events.Load(), float64(crowd.bytes.Load())/1e6), err
			}
			for i := range *followers {
				if err := crowd.join(of[i%len(of)], *plain || i == 0); err != nil {
					crowd.close()
					return nil, err
				}
			}
			return end, nil
		})
	}, "--log-level", "warn")
}

// trailCrowd is followers that read what comes and drop it. The first one counts
// events.
type trailCrowd struct {
	conns   []net.Conn
	events  atomic.Int64
	bytes   atomic.Int64 // of all
	reading sync.WaitGroup
}

// join follows the whole trail at the node from now on.
func (w *trailCrowd) join(n *procs.Node, plain bool) error {
	conn, err := net.Dial("tcp", n.HTTPAddr)
	if err != nil {
		return err
	}
	counts := len(w.conns) == 0
	w.conns = append(w.conns, conn)
	request := "GET /api/events HTTP/1.1\r\nHost: " + n.HTTPAddr + "\r\nAccept: text/event-stream\r\n"
	if !plain {
		request += "Accept-Encoding: gzip\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	first := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 200" {
		return fmt.Errorf("%s answers a follower of the trail %q, %w", n.ID, first, err)
	}
	w.reading.Go(func() {
		buf, eventEnd := make([]byte, 64<<10), []byte("}\n")
		for {
			n, err := conn.Read(buf)
			w.bytes.Add(int64(n))
			if counts {
				w.events.Add(int64(bytes.Count(buf[:n], eventEnd)))
			}
			if err != nil {
				return
			}
		}
	})
	return nil
}

// level waits until the first follower has the events of the load, but for some
// whose end was cut between two reads and was not counted.
func (w *trailCrowd) level(ctx context.Context, least int64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for w.events.Load() < least-least/100 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("a follower got %d of %d events: %w", w.events.Load(), least, ctx.Err())
		}
	}
	return nil
}

func (w *trailCrowd) close() {
	for _, conn := range w.conns {
		_ = conn.Close() // whatever it says, it is closed
	}
	w.reading.Wait()
}
