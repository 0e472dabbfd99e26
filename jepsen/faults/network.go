package faults

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/hosts"
)

// links describes the state of the network.
type links = map[hosts.Link]hosts.Quality

// shape chooses links between nodes, and describes in words what happens to them.
type shape func(c *Cluster, nodes []*procs.Node) (links, string)

// shaped changes the network to the shape. Callers reach all nodes.
func shaped(shape shape) act {
	return func(_ context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
		now, words := shape(c, nodes)
		remove, err := c.Net.Shape(now)
		if err != nil {
			return nil, err
		}
		c.notef("%s", words)
		return func(context.Context) error {
			c.notef("%s: over", words)
			return remove()
		}, nil
	}
}

// between sets the quality of all links from one group to the other.
func between(c *Cluster, from, to []*procs.Node, q hosts.Quality, shape links) links {
	for _, a := range from {
		for _, b := range to {
			if a != b {
				shape[hosts.Link{From: c.number(a), To: c.number(b)}] = q
			}
		}
	}
	return shape
}

// cut cuts the links from one group to the other.
func cut(c *Cluster, from, to []*procs.Node, shape links) links {
	return between(c, from, to, hosts.Quality{Cut: true}, shape)
}

// apart cuts the links between two groups, both ways.
func apart(c *Cluster, a, b []*procs.Node, shape links) links {
	return cut(c, b, a, cut(c, a, b, shape))
}

// isolate cuts the nodes off from all others.
func isolate(c *Cluster, nodes []*procs.Node) (links, string) {
	return apart(c, nodes, without(c, nodes...), links{}), names(nodes) + " cut off"
}

// split cuts the cluster in two: one side has a majority.
func split(c *Cluster, nodes []*procs.Node) (links, string) {
	minority := nodes[:(len(nodes)-1)/2]
	majority := without(c, minority...)
	return apart(c, minority, majority, links{}), fmt.Sprintf("%s split from %s", names(minority), names(majority))
}

// deaf lets the nodes send to the others but hear nothing from them; mute is the reverse.
func deaf(c *Cluster, nodes []*procs.Node) (links, string) {
	return cut(c, without(c, nodes...), nodes, links{}), names(nodes) + " hears nothing"
}

func mute(c *Cluster, nodes []*procs.Node) (links, string) {
	return cut(c, nodes, without(c, nodes...), links{}), names(nodes) + " is not heard"
}

// bridge cuts the cluster in two halves that share one node, which sees all others.
func bridge(c *Cluster, nodes []*procs.Node) (links, string) {
	middle, rest := nodes[0], nodes[1:]
	return apart(c, rest[:len(rest)/2], rest[len(rest)/2:], links{}), middle.ID + " alone sees both halves"
}

// ring lets each node see only its two neighbours. In a ring of three all nodes would see
// each other, so that becomes a bridge.
func ring(c *Cluster, nodes []*procs.Node) (links, string) {
	if len(nodes) < 4 {
		return bridge(c, nodes)
	}
	shape := links{}
	var order []string
	for i, n := range nodes {
		order = append(order, n.ID)
		next, previous := nodes[(i+1)%len(nodes)], nodes[(i+len(nodes)-1)%len(nodes)]
		apart(c, []*procs.Node{n}, without(c, n, next, previous), shape)
	}
	return shape, "a ring of " + strings.Join(order, ", ")
}

// bad makes all links of the nodes bad, both ways.
func bad(q hosts.Quality, words string) shape {
	return func(c *Cluster, nodes []*procs.Node) (links, string) {
		return between(c, c.Nodes, nodes, q, between(c, nodes, c.Nodes, q, links{})), names(nodes) + ": " + words
	}
}

// The qualities of bad links. Elections take about a second: the delays are well below
// that, and above the time of a write.
var (
	lossy      = hosts.Quality{Loss: 0.2}
	slow       = hosts.Quality{Delay: 30 * time.Millisecond, Jitter: 50 * time.Millisecond}
	verySlow   = hosts.Quality{Delay: 150 * time.Millisecond, Jitter: 200 * time.Millisecond}
	duplicated = hosts.Quality{Duplicate: 0.3}
	reordered  = hosts.Quality{Reorder: 0.3}
	flaky      = hosts.Quality{Loss: 0.05, Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Duplicate: 0.05, Reorder: 0.1}
)

// narrowRate bounds what a node behind a narrow link can send, in bytes per second.
const narrowRate = 32 << 10

// narrow limits what the nodes can send.
func narrow(c *Cluster, nodes []*procs.Node) (links, string) {
	shape := links{}
	for _, n := range nodes {
		shape[hosts.Link{From: c.number(n), To: hosts.Everybody}] = hosts.Quality{Limit: narrowRate}
	}
	return shape, fmt.Sprintf("%s can send %d KiB/s", names(nodes), narrowRate>>10)
}
