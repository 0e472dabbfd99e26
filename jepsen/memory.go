package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/memory"
	"github.com/claimq/claimq/jepsen/sqs"
)

const (
	// memoryLimit is the nodes' memory_limit, and memoryMaxBytes what their processes may take by it.
	memoryLimit    = "256MiB"
	memoryMaxBytes = 512 << 20
	// memoryKeys is the number of API keys of the nodes.
	memoryKeys = 2_000
)

// runMemory asks every call over many connections at once, and says what memory the nodes took.
func runMemory(ctx context.Context, c *call) error {
	cfg, calls := memory.Config{Out: c.out}, ""
	c.onNodes(&c.plant)
	c.IntVar(&c.nodes, "nodes", c.nodes, "nodes")
	c.IntVar(&cfg.Conns, "conns", 400, "connections that ask at once")
	c.DurationVar(&cfg.Hold, "hold", 6*time.Second, "how long each row asks")
	c.StringVar(&calls, "calls", "", "the calls to ask, separated by commas; not given: all")
	c.BoolVar(&cfg.Follower, "follower", false, "ask another node than the leader")
	if err := c.begin(ctx, func() bool { return cfg.Conns > 0 && cfg.Hold > 0 && (c.nodes > 1 || !cfg.Follower) }); err != nil {
		return err
	}
	if calls != "" {
		cfg.Calls = strings.Split(calls, ",")
	}
	r, err := memoryOf(ctx, c.binary, c.dir, c.nodes, cfg)
	if r == nil {
		return c.end(nil, err)
	}
	return c.end(r, err)
}

// memoryOf is the run itself, with separate nodes in dir.
func memoryOf(ctx context.Context, binary, dir string, nodes int, cfg memory.Config) (*memory.Report, error) {
	may, types := map[string]string{"asker": "roles: [reader, producer, worker, operator]"}, make([]string, 15)
	for i := range types {
		types[i] = strings.Repeat("t", 125) + fmt.Sprintf("%03d", i)
	}
	for i := range memoryKeys {
		may[fmt.Sprintf("key-%d", i)] = "role: worker, task_types: [" + strings.Join(types, ",") + "]"
	}
	file := filepath.Join(dir, "keys.yaml")
	keys, err := procs.WriteKeys(file, may)
	if err != nil {
		return nil, err
	}
	credential := filepath.Join(dir, "sqs.yaml")
	if err := sqs.WriteCredential(credential); err != nil {
		return nil, err
	}
	cfg.Key, cfg.MaxBytes = keys["asker"], memoryMaxBytes
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cfg.Nodes, err = procs.Start(starting, procs.Config{
		Binary: binary, Dir: dir, Nodes: nodes, APIKey: cfg.Key,
		Flags: []string{"--log-level", "warn", "--memory-limit", memoryLimit, "--keys-file", file, "--limits-connections-per-address", "16384", "--sqs-enabled", "--sqs-credentials-file", credential},
	})
	if err != nil {
		return nil, err
	}
	defer cfg.Nodes.Close()
	r, err := memory.Run(ctx, cfg)
	for _, n := range cfg.Nodes.Nodes {
		if log := n.Output(); strings.Contains(log, "panic") {
			err = errors.Join(err, fmt.Errorf("%s logged a panic:\n%s", n.ID, n.LogTail(60)))
		}
	}
	return r, err
}
