package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// ErrUnknown is returned for a fault that is not in the catalog.
var ErrUnknown = errors.New("no such fault")

// ErrNeeds is returned when a fault needs what the machine or the cluster does
// not have.
var ErrNeeds = errors.New("not possible here")

// Fault is one thing that can happen to a cluster. It is a value without
// state: what it did is known to the function that undoes it.
type Fault struct {
	name   string
	traits trait
	pick   picker // of the nodes that act is given; nil: none
	act    act
}

// undo ends what a fault began. It is called once, with a context that may be another one.
type undo func(context.Context) error

// act makes something happen to the nodes. If it fails nothing is left to undo.
type act func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error)

// trait is a set of what faults have in common.
type trait int

const (
	ownHosts  trait = 1 << iota // the nodes must have hosts of their own
	ownDisks                    // the nodes must have disks of their own
	ownLogs                     // the nodes must print to pipes
	ownClocks                   // the binary must be built with BuildTag
	powerless                   // a disk comes back only when nothing else holds it
	operated                    // it is ended by operators' calls: the cluster must work
	alone                       // it fails where anything else is in the way
	takesNode                   // it takes a node's folder, vote or address
)

func (t trait) has(other trait) bool { return t&other != 0 }

// Name is the fault's name in the catalog, as partition-leader.
func (f Fault) Name() string { return f.name }

// Inject makes it happen, to nodes that rng chooses. recover ends it: it undoes
// what Inject did and starts the nodes that ended of it, but does not wait until
// they are ready. It is called once, with a context that may be another one.
// If Inject fails nothing is left to undo.
func (f Fault) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (recover func(context.Context) error, err error) {
	switch {
	case f.traits.has(ownHosts) && c.Net == nil:
		return nil, fmt.Errorf("%s: %w: the nodes have no hosts of their own", f.name, ErrNeeds)
	case f.traits.has(ownDisks) && c.Disks == nil:
		return nil, fmt.Errorf("%s: %w: the nodes have no disks of their own", f.name, ErrNeeds)
	case f.traits.has(ownClocks) && !c.clocks:
		return nil, fmt.Errorf("%s: %w: build claimq with -tags %s", f.name, ErrNeeds, BuildTag)
	}
	var nodes []*procs.Node
	if f.pick != nil {
		nodes = f.pick(ctx, c, rng)
	}
	if recover, err = f.act(ctx, c, nodes, rng); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return recover, nil
}

// Ground says what the nodes should stand on for these faults, as in Config:
// hosts of their own where there are faults of the network or of members, disks of
// their own where disks are full, slow, fail or lose power, pipes to print to where logs are not read.
func Ground(faults ...Fault) (hosts, disks, logs bool) {
	all := Together(faults...).traits
	return all.has(ownHosts), all.has(ownDisks), all.has(ownLogs)
}

// Together returns a fault that injects all of these and recovers from the last one first.
// Those whose recovery needs a cluster that works come first; then losses of power, as a
// disk comes back only when nothing else holds it. Its name joins theirs with plus signs, as
// ByName reads them.
func Together(faults ...Fault) Fault {
	place := func(f Fault) int {
		switch {
		case f.traits.has(operated):
			return 0
		case f.traits.has(powerless):
			return 1
		}
		return 2
	}
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b Fault) int { return place(a) - place(b) })
	all := Fault{}
	var names []string
	for _, f := range faults {
		names = append(names, f.name)
		all.traits |= f.traits
	}
	all.name = strings.Join(names, "+")
	all.act = func(ctx context.Context, c *Cluster, _ []*procs.Node, rng *rand.Rand) (undo, error) {
		var done undos
		for _, f := range faults {
			recover, err := f.Inject(ctx, c, rng)
			if err != nil {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
				defer cancel()
				return nil, errors.Join(err, done.all(ctx))
			}
			done = append(done, recover)
		}
		return done.all, nil
	}
	return all
}

// Clash reports whether one of the faults must come alone, or both take a node's folder, vote
// or address: at once they may leave no majority that has what was acknowledged, which nothing
// promises to survive.
func Clash(a, b Fault) bool {
	return (a.traits | b.traits).has(alone) || (a.traits & b.traits).has(takesNode)
}

// Pairs draws so many pairs of different faults of the catalog that do not clash.
func Pairs(count int, rng *rand.Rand) []Fault {
	all := Catalog()
	var pairs []Fault
	for len(pairs) < count {
		a, b := all[rng.Intn(len(all))], all[rng.Intn(len(all))]
		if a.name != b.name && !Clash(a, b) {
			pairs = append(pairs, Together(a, b))
		}
	}
	return pairs
}

// undoTimeout bounds what is undone of a fault that could not be injected as a
// whole.
const undoTimeout = 30 * time.Second

// undos are what is to be undone, in the order in which it was done.
type undos []undo

// all undoes all, the last first, whatever fails.
func (u undos) all(ctx context.Context) error {
	var errs []error
	for _, step := range slices.Backward(u) {
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}
