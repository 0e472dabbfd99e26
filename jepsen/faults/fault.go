package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// ErrUnknown is returned for a fault that is not in the catalog.
var ErrUnknown = errors.New("no such fault")

// ErrNeeds is returned when a fault needs something that the machine or the cluster lacks.
var ErrNeeds = errors.New("not possible here")

// Fault is a way to disturb a cluster. It is a value without state: only the function that undoes
// it knows what it did.
type Fault struct {
	name   string
	traits trait
	pick   picker // chooses the nodes for act; nil: none
	act    act
}

// undo ends what a fault began. It is called once, possibly with another context.
type undo func(context.Context) error

// act disturbs the nodes. If it fails, nothing is left to undo.
type act func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error)

// trait is a set of properties of faults.
type trait int

const (
	ownHosts  trait = 1 << iota // the nodes must have separate hosts
	ownDisks                    // the nodes must have separate disks
	ownLogs                     // the nodes must print to pipes
	ownClocks                   // the binary must be built with BuildTag
	powerless                   // a disk comes back only when nothing else holds it
	operated                    // it is ended by operators' calls, so the cluster must work
	alone                       // it fails together with any other fault
	takesNode                   // it takes a node's folder, vote or address
)

func (t trait) has(other trait) bool { return t&other != 0 }

// Name returns the fault's name in the catalog, such as partition-leader.
func (f Fault) Name() string { return f.name }

// Inject injects the fault into nodes that rng chooses. recover ends it: it undoes what Inject did
// and starts the nodes that ended because of it, without waiting until they are ready. It is called
// once, possibly with another context. If Inject fails, nothing is left to undo.
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

// Ground returns the settings in Config that the faults need: hosts for faults of the network or of
// members, disks for disks that are full, slow, fail or lose power, pipes for logs that are not
// read.
func Ground(faults ...Fault) (hosts, disks, logs bool) {
	all := Together(faults...).traits
	return all.has(ownHosts), all.has(ownDisks), all.has(ownLogs)
}

// Together returns a fault that injects all of these, and recovers in reverse order. Those whose
// recovery needs a working cluster come first, then losses of power, because a disk comes back only
// when nothing else holds it. Its name joins theirs with plus signs, as in ByName.
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

// Clash reports whether one of the faults cannot be combined, or both take a node's folder, vote or
// address: together they may leave no majority that has what was acknowledged, and nothing promises
// to survive that.
func Clash(a, b Fault) bool {
	return (a.traits | b.traits).has(alone) || (a.traits & b.traits).has(takesNode)
}

// Pairs draws that number of pairs of different faults in the catalog that do not clash.
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

// undoTimeout bounds undoing the parts of a fault that could not be injected as a whole.
const undoTimeout = 30 * time.Second

// undos lists what to undo, in the order in which it was done.
type undos []undo

// all undoes everything in reverse order, even after an error.
func (u undos) all(ctx context.Context) error {
	var errs []error
	for _, step := range slices.Backward(u) {
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}
