package faults

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// picker chooses the nodes that a fault affects.
type picker func(ctx context.Context, c *Cluster, rng *rand.Rand) []*procs.Node

// pickers maps names in the catalog to pickers.
var pickers = map[string]picker{"one": one, "leader": leader, "majority": majority, "all": all, "shuffled": shuffled}

// one picks a random node.
func one(ctx context.Context, c *Cluster, rng *rand.Rand) []*procs.Node {
	return shuffled(ctx, c, rng)[:1]
}

// majority picks a smallest majority at random.
func majority(ctx context.Context, c *Cluster, rng *rand.Rand) []*procs.Node {
	return shuffled(ctx, c, rng)[:len(c.Nodes)/2+1]
}

// all picks all nodes.
func all(_ context.Context, c *Cluster, _ *rand.Rand) []*procs.Node {
	return slices.Clone(c.Nodes)
}

// shuffled picks all nodes, in random order.
func shuffled(_ context.Context, c *Cluster, rng *rand.Rand) []*procs.Node {
	nodes := slices.Clone(c.Nodes)
	rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// leaderTimeout bounds the search for a leader.
const leaderTimeout = 3 * time.Second

// leader picks the leader, or a random node without a leader.
func leader(ctx context.Context, c *Cluster, rng *rand.Rand) []*procs.Node {
	fallback := one(ctx, c, rng) // drawn always, so that the following draws are the same
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	if n, err := c.WaitLeader(ctx); err == nil {
		return []*procs.Node{n}
	}
	return fallback
}

// without returns the cluster's other nodes.
func without(c *Cluster, nodes ...*procs.Node) []*procs.Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n *procs.Node) bool { return slices.Contains(nodes, n) })
}

// number returns the node's number in links.
func (c *Cluster) number(n *procs.Node) int { return slices.Index(c.Nodes, n) + 1 }

// names joins the nodes' names, in the order of the cluster.
func names(nodes []*procs.Node) string {
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}
