package faults

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// rotLook is how long a node whose bytes have rotted has to become ready.
const rotLook = 10 * time.Second

// rot flips bytes of a node's files, anywhere in log and snapshots, while it is down.
// A node that finds it does not start, and is replaced; one whose flipped bytes say
// nothing (the unused end of a segment) goes on.
type rot struct{ name string }

func (r rot) Name() string                       { return r.name }
func (r rot) Needs() (root bool, tools []string) { return true, []string{"ip", "nft"} }

func (r rot) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if c.Net == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no hosts of their own", r.name, ErrNeeds)
	}
	n := one(ctx, c, rng)[0]
	if err := killAll([]*procs.Node{n}); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	what, err := flip(n.DataDir, rng)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	c.notef("%s: %s", n.ID, what)
	return func(ctx context.Context) error {
		if err := c.startNodes([]*procs.Node{n}); err != nil {
			return err
		}
		looking, cancel := context.WithTimeout(ctx, rotLook)
		defer cancel()
		if n.WaitReady(looking) == nil {
			return nil
		}
		return c.replace(ctx, n)
	}, nil
}

// flip flips one to three bits of one file that holds log, vote or snapshots.
func flip(dir string, rng *rand.Rand) (what string, err error) {
	var paths []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "LOCK" && d.Name() != "identity.json" && d.Name() != "node.key" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		return "it has nothing that could rot", err
	}
	path := paths[rng.Intn(len(paths))]
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return "an empty file cannot rot", err
	}
	used := len(data)
	for used > 1 && data[used-1] == 0 { // most of a segment is zeros
		used--
	}
	count := 1 + rng.Intn(3)
	for range count {
		at := rng.Intn(used)
		data[at] ^= 1 << rng.Intn(8)
	}
	return fmt.Sprintf("%d bits of %s have flipped", count, filepath.Base(path)), os.WriteFile(path, data, 0o600)
}
