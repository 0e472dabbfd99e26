package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/hosts"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// Config says what to run and where.
type Config struct {
	Binary string // path of claimq
	Dir    string // for data and logs; it exists
	Nodes  int    // 1 to 9
	// Seed determines what the network does to packets.
	Seed int64
	// Hosts gives each node, and the callers, a separate network namespace. It needs
	// root.
	Hosts bool
	// Disks gives each node a FUSE file system that can lose unsynced data. It needs root.
	Disks bool
	// Logs makes each node print to a pipe.
	Logs bool
	// Flags are passed to each node in addition to its own.
	Flags []string
	// APIKey is the operator's key for calls to the nodes, "" if they have no keys.
	APIKey string
	// Note, if not nil, is told in words what a fault does to which node. It is called from
	// the goroutine that injects or recovers.
	Note func(format string, args ...any)
	// Exited, if not nil, is told of each node that has ended on request, like Note.
	Exited func(n *procs.Node)
}

// Cluster is a cluster of real nodes with everything that its faults act on.
type Cluster struct {
	// The nodes' processes. n1 is the first; its number in links is 1.
	*procs.Cluster
	// Dial connects to a node like a caller: from the callers' host if the nodes have hosts.
	// nil is an ordinary dialer.
	Dial procs.DialFunc
	// Net connects the nodes; nil without separate hosts.
	Net *hosts.Hosts
	// Disks are the nodes' disks, by the index of the node; nil if they are ordinary folders.
	Disks []*lossyfs.FS

	dir    string
	key    string
	clocks bool // the nodes' wall clocks can be set
	note   func(format string, args ...any)
	exits  func(n *procs.Node)
}

// New prepares a cluster without starting a node. The caller must close it.
func New(ctx context.Context, cfg Config) (*Cluster, error) {
	if (cfg.Hosts || cfg.Disks) && os.Geteuid() != 0 {
		return nil, fmt.Errorf("hosts and disks of the nodes' own: %w: they need root", ErrNeeds)
	}
	c := &Cluster{dir: cfg.Dir, key: cfg.APIKey, clocks: canSetClocks(cfg.Binary), note: cfg.Note, exits: cfg.Exited}
	if err := c.prepare(ctx, cfg); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// prepare creates what the nodes run on, and the nodes. If it fails, Close cleans up what it
// made.
func (c *Cluster) prepare(ctx context.Context, cfg Config) (err error) {
	p := procs.Config{
		Binary: cfg.Binary, Dir: cfg.Dir, Nodes: cfg.Nodes, Pipes: cfg.Logs, Flags: cfg.Flags, APIKey: cfg.APIKey,
		EnvOf: func(i int) []string { return []string{clockEnv + "=" + clockPath(cfg.Dir, i)} },
	}
	if cfg.Disks {
		for i := range cfg.Nodes {
			disk, err := lossyfs.New(filepath.Join(cfg.Dir, fmt.Sprintf("disk%d", i+1)))
			if err != nil {
				return err
			}
			c.Disks = append(c.Disks, disk)
			p.DataDirs = append(p.DataDirs, filepath.Join(disk.Dir(), "data"))
		}
	}
	if cfg.Hosts {
		if c.Net, err = hosts.New(cfg.Nodes, cfg.Seed); err != nil {
			return err
		}
		for i := range cfg.Nodes {
			p.Hosts = append(p.Hosts, c.Net.Host(i+1))
		}
		c.Dial = c.Net.Dial
		p.Dial = c.Dial
	}
	c.Cluster, err = procs.New(p)
	return err
}

// Close ends all nodes and takes down everything that they ran on.
func (c *Cluster) Close() error {
	var errs []error
	if c.Cluster != nil {
		c.Cluster.Close()
	}
	if c.Net != nil {
		errs = append(errs, c.Net.Close())
	}
	for _, disk := range c.Disks {
		errs = append(errs, disk.Close())
	}
	return errors.Join(errs...)
}

// notef reports what happens.
func (c *Cluster) notef(format string, args ...any) {
	if c.note != nil {
		c.note(format, args...)
	}
}

// exited reports that a node has ended on request.
func (c *Cluster) exited(n *procs.Node) {
	if c.exits != nil {
		c.exits(n)
	}
}
