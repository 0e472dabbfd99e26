package faults

import (
	"context"
	"math/rand"
	"slices"
	"strings"
)

// together is several faults at once.
type together []Fault

// Together returns a fault that injects all of these, in this order, and
// recovers from the last one first.
func Together(faults ...Fault) Fault { return together(faults) }

// Name joins the names with plus signs, as ByName reads them.
func (t together) Name() string {
	var names []string
	for _, f := range t {
		names = append(names, f.Name())
	}
	return strings.Join(names, "+")
}

func (t together) Needs() (root bool, tools []string) {
	for _, f := range t {
		r, more := f.Needs()
		root = root || r
		tools = append(tools, more...)
	}
	slices.Sort(tools)
	return root, slices.Compact(tools)
}

func (t together) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	u := undo{}
	for _, f := range t {
		recover, err := f.Inject(ctx, c, rng)
		if err != nil {
			return nil, u.after(ctx, err)
		}
		u.add(recover)
	}
	return u.all, nil
}
