package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"

	"github.com/claimq/claimq/jepsen/hosts"
)

// ErrUnknown is returned for a fault that is not in the catalog.
var ErrUnknown = errors.New("no such fault")

// ErrNeeds is returned when a fault needs what the machine or the cluster does
// not have.
var ErrNeeds = errors.New("not possible here")

// Fault is one thing that can happen to a cluster. It is a value without
// state: what it did is known to the function that undoes it.
type Fault interface {
	// Name is the fault's name in the catalog, as partition-leader.
	Name() string
	// Needs says whether the fault needs root and which programs it runs. Root
	// stands for a cluster with hosts and disks of its own, too.
	Needs() (root bool, tools []string)
	// Inject makes it happen, to nodes that rng chooses. recover ends it: it undoes
	// what Inject did and starts the nodes that ended of it, but does not wait until
	// they are ready. It is called once, with a context that may be another one.
	// If Inject fails nothing is left to undo.
	Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (recover func(context.Context) error, err error)
}

// Check reports, as ErrNeeds, whether the fault is impossible for this user on
// this machine, and what to do about it.
func Check(f Fault) error {
	root, tools := f.Needs()
	if root && os.Geteuid() != 0 {
		return fmt.Errorf("%s: %w: it needs root (network namespaces, FUSE, ptrace)", f.Name(), ErrNeeds)
	}
	for _, tool := range tools {
		if _, err := hosts.FindTool(tool); err != nil {
			return fmt.Errorf("%s: %w: it needs %s; on Debian: apt-get install nftables iproute2", f.Name(), ErrNeeds, tool)
		}
	}
	return nil
}

// Ground says what the nodes should stand on for these faults, as in Config:
// hosts of their own where there are faults of the network or of members, disks of
// their own where disks are full, slow, fail or lose power.
func Ground(faults ...Fault) (ownHosts, ownDisks bool) {
	for _, f := range faults {
		switch f := f.(type) {
		case together:
			h, d := Ground(f...)
			ownHosts, ownDisks = ownHosts || h, ownDisks || d
		case beat:
			ownHosts = ownHosts || f.links
		case network, narrow, member, rot:
			ownHosts = true
		case power, badDisk:
			ownDisks = true
		}
	}
	return ownHosts, ownDisks
}

// ByName returns the faults of the catalog with these names, in this order.
// A name that ends in * stands for all that begin so; names joined with plus
// signs are one fault, made of several together.
func ByName(names ...string) ([]Fault, error) {
	var found []Fault
	for _, name := range names {
		if parts := strings.Split(name, "+"); len(parts) > 1 {
			faults, err := ByName(parts...)
			if err != nil {
				return nil, err
			}
			found = append(found, Together(faults...))
			continue
		}
		matching := matching(name)
		if len(matching) == 0 {
			return nil, fmt.Errorf("%w: %q; there are: %s", ErrUnknown, name, strings.Join(Names(), " "))
		}
		found = append(found, matching...)
	}
	return found, nil
}

// matching returns the faults of that name, or that begin with it if it ends
// in *.
func matching(name string) []Fault {
	prefix, pattern := strings.CutSuffix(name, "*")
	var found []Fault
	for _, f := range Catalog() {
		if f.Name() == name || pattern && strings.HasPrefix(f.Name(), prefix) {
			found = append(found, f)
		}
	}
	return found
}

// Names returns the names of the catalog, in its order.
func Names() []string {
	var names []string
	for _, f := range Catalog() {
		names = append(names, f.Name())
	}
	return names
}
