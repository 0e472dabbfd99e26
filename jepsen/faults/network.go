package faults

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/hosts"
	"github.com/claimq/claimq/jepsen/procs"
)

// links is a shape of the network.
type links = map[hosts.Link]hosts.Quality

// network is a fault of links between nodes. Callers reach all nodes.
type network struct {
	name string
	// shape chooses the links and says in words what happens to them.
	shape func(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string)
}

func (n network) Name() string { return n.name }

func (n network) Needs() (root bool, tools []string) { return true, []string{"ip", "nft"} }

func (n network) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if c.Net == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no hosts of their own", n.name, ErrNeeds)
	}
	shape, words := n.shape(ctx, c, rng)
	remove, err := c.Net.Shape(shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.name, err)
	}
	c.notef("%s", words)
	return func(context.Context) error {
		c.notef("%s: over", words)
		return remove()
	}, nil
}

// between puts the quality on all links from one group to the other.
func between(c *Cluster, from, to []*procs.Node, q hosts.Quality, shape links) {
	for _, a := range from {
		for _, b := range to {
			if a != b {
				shape[hosts.Link{From: c.number(a), To: c.number(b)}] = q
			}
		}
	}
}

// cut cuts the links between two groups, both ways.
func cut(c *Cluster, a, b []*procs.Node, shape links) {
	between(c, a, b, hosts.Quality{Cut: true}, shape)
	between(c, b, a, hosts.Quality{Cut: true}, shape)
}

// without returns the nodes of the cluster that are not among these.
func without(c *Cluster, nodes ...*procs.Node) []*procs.Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes()), func(n *procs.Node) bool { return slices.Contains(nodes, n) })
}

// isolate cuts the node off from all others.
func isolate(pick picker) func(context.Context, *Cluster, *rand.Rand) (links, string) {
	return func(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string) {
		nodes, shape := pick(ctx, c, rng), links{}
		cut(c, nodes, without(c, nodes...), shape)
		return shape, names(nodes) + " cut off"
	}
}

// split cuts the cluster in two, at random: one side has a majority.
func split(_ context.Context, c *Cluster, rng *rand.Rand) (links, string) {
	nodes, shape := shuffled(c, rng), links{}
	minority := nodes[:(len(nodes)-1)/2]
	cut(c, minority, without(c, minority...), shape)
	return shape, fmt.Sprintf("%s split from %s", names(minority), names(without(c, minority...)))
}

// deaf lets the node send to the others and hear nothing from them; mute the
// other way round.
func deaf(pick picker) func(context.Context, *Cluster, *rand.Rand) (links, string) {
	return func(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string) {
		nodes, shape := pick(ctx, c, rng), links{}
		between(c, without(c, nodes...), nodes, hosts.Quality{Cut: true}, shape)
		return shape, names(nodes) + " hears nothing"
	}
}

func mute(pick picker) func(context.Context, *Cluster, *rand.Rand) (links, string) {
	return func(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string) {
		nodes, shape := pick(ctx, c, rng), links{}
		between(c, nodes, without(c, nodes...), hosts.Quality{Cut: true}, shape)
		return shape, names(nodes) + " is not heard"
	}
}

// bridge cuts the cluster in two halves that share one node, which sees all.
func bridge(_ context.Context, c *Cluster, rng *rand.Rand) (links, string) {
	nodes, shape := shuffled(c, rng), links{}
	middle, rest := nodes[0], nodes[1:]
	cut(c, rest[:len(rest)/2], rest[len(rest)/2:], shape)
	return shape, middle.ID + " alone sees both halves"
}

// ring lets each node see its two neighbours only, in a random order. In a
// ring of three everybody would see everybody: there, it is a bridge.
func ring(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string) {
	if len(c.Nodes()) < 4 {
		return bridge(ctx, c, rng)
	}
	nodes, shape := shuffled(c, rng), links{}
	var order []string
	for i, n := range nodes {
		order = append(order, n.ID)
		next, previous := nodes[(i+1)%len(nodes)], nodes[(i+len(nodes)-1)%len(nodes)]
		cut(c, []*procs.Node{n}, without(c, n, next, previous), shape)
	}
	return shape, "a ring of " + strings.Join(order, ", ")
}

// bad makes all links of the picked nodes bad, both ways.
func bad(pick picker, q hosts.Quality, words string) func(context.Context, *Cluster, *rand.Rand) (links, string) {
	return func(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string) {
		nodes, shape := pick(ctx, c, rng), links{}
		between(c, nodes, c.Nodes(), q, shape)
		between(c, c.Nodes(), nodes, q, shape)
		return shape, names(nodes) + ": " + words
	}
}

// What bad links are like. Elections take about a second: the delays are well
// below, and above what a write takes.
var (
	lossy      = hosts.Quality{Loss: 0.2}
	slow       = hosts.Quality{Delay: 30 * time.Millisecond, Jitter: 50 * time.Millisecond}
	verySlow   = hosts.Quality{Delay: 150 * time.Millisecond, Jitter: 200 * time.Millisecond}
	duplicated = hosts.Quality{Duplicate: 0.3}
	reordered  = hosts.Quality{Reorder: 0.3}
	flaky      = hosts.Quality{Loss: 0.05, Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Duplicate: 0.05, Reorder: 0.1}
)

// narrowRate is what a node behind a narrow link can send, in bytes per second.
const narrowRate = 32 << 10

// narrow bounds what nodes can send.
type narrow struct {
	name string
	pick picker
}

func (n narrow) Name() string                       { return n.name }
func (n narrow) Needs() (root bool, tools []string) { return true, []string{"ip", "nft", "tc"} }

func (n narrow) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if c.Net == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no hosts of their own", n.name, ErrNeeds)
	}
	nodes := n.pick(ctx, c, rng)
	undo := undo{}
	for _, node := range nodes {
		remove, err := c.Net.Limit(c.number(node), narrowRate)
		if err != nil {
			return nil, undo.after(ctx, fmt.Errorf("%s: %w", n.name, err))
		}
		undo.add(func(context.Context) error { return remove() })
	}
	c.notef("%s can send %d KiB/s", names(nodes), narrowRate>>10)
	undo.add(func(context.Context) error { c.notef("%s can send at full rate", names(nodes)); return nil })
	return undo.all, nil
}
