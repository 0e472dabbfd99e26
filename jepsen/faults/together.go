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

// InOrder sorts faults that are to be made together: first those whose recovery needs a
// cluster that works, as recovery begins with the last one; then losses of power, as
// a disk comes back only when nothing else holds it.
func InOrder(list []Fault) []Fault {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Fault) int { return order(a) - order(b) })
	return sorted
}

// order is a fault's place in InOrder; of several at once that of the first.
func order(f Fault) int {
	switch f := f.(type) {
	case together:
		first := 2
		for _, part := range f {
			first = min(first, order(part))
		}
		return first
	case member, rot:
		return 0
	case power:
		return 1
	}
	return 2
}

// Clash reports whether both faults take a node's folder, vote or address: at once they
// may leave no majority that has what was acknowledged, which nothing promises to survive.
func Clash(a, b Fault) bool { return takesMember(a) && takesMember(b) }

func takesMember(f Fault) bool {
	switch f := f.(type) {
	case together:
		return slices.ContainsFunc(f, takesMember)
	case rot:
		return true
	case member:
		return f.name != "member-transfer"
	}
	return false
}

// Pairs draws so many pairs of different faults of the catalog that do not clash.
func Pairs(count int, rng *rand.Rand) []Fault {
	all := Catalog()
	var pairs []Fault
	for len(pairs) < count {
		a, b := all[rng.Intn(len(all))], all[rng.Intn(len(all))]
		if a.Name() != b.Name() && !Clash(a, b) {
			pairs = append(pairs, Together(InOrder([]Fault{a, b})...))
		}
	}
	return pairs
}
