package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/fuzz"
	"github.com/claimq/claimq/jepsen/sqs"
)

const (
	fuzzNodes = 3
	// fuzzTrailBytes bounds the trail, so that it does not count as growth.
	fuzzTrailBytes = "1048576"
	// fuzzMemoryLimit is the nodes' memory_limit, and fuzzResidentMaxMB bounds their
	// processes' memory: Go uses up to half as much again, and the binary and files come on
	// top.
	fuzzMemoryLimit   = "256MiB"
	fuzzResidentMaxMB = 512
	// fuzzFoesMin leaves room for the senders and the guest among the connections of a
	// node.
	fuzzFoesMin = 200
)

// runFuzz sends requests to three nodes that no client would send, and reports forbidden
// answers.
func runFuzz(ctx context.Context, c *call) error {
	to := fuzz.Config{}
	c.onNodes(&c.plant)
	c.IntVar(&to.Requests, "requests", 100_000, "requests to send, those to the peer ports counted")
	c.IntVar(&to.Senders, "senders", 16, "how many send at a time")
	secure := c.Bool("secure", false, "give the nodes API keys, of each role, and TLS")
	c.IntVar(&to.Foes, "foes", 2000, "connections of each siege after the requests, 0: no siege, or at least 200; the nodes take half as many")
	c.DurationVar(&to.Hold, "hold", 12*time.Second, "how long each siege lasts")
	if err := c.begin(ctx, func() bool {
		return to.Requests > 0 && to.Senders > 0 && (to.Foes == 0 || to.Foes >= fuzzFoesMin) && to.Hold >= 0
	}); err != nil {
		return err
	}
	to.Seed = c.seed
	r, err := fuzzNodesOf(ctx, c.binary, c.dir, to, *secure)
	if r == nil {
		return c.end(nil, err)
	}
	return c.end(r, err)
}

// fuzzNodesOf runs it with separate nodes in dir: with API keys and TLS if secure.
func fuzzNodesOf(ctx context.Context, binary, dir string, to fuzz.Config, secure bool) (*fuzz.Report, error) {
	to.JoinKey, to.ResidentMaxMB = []byte(procs.JoinKey), fuzzResidentMaxMB
	run := procs.Config{Binary: binary, Dir: dir, Nodes: fuzzNodes, Flags: []string{"--log-level", "warn", "--trail-bytes", fuzzTrailBytes, "--sqs-enabled"}}
	if to.Foes > 0 {
		run.Flags = append(run.Flags, "--limits-connections", strconv.Itoa(to.Foes/2), "--memory-limit", fuzzMemoryLimit)
	}
	if secure {
		s, err := newSecrets(dir)
		if err != nil {
			return nil, err
		}
		credential := filepath.Join(dir, "sqs.yaml")
		if err := sqs.WriteCredential(credential); err != nil {
			return nil, err
		}
		run.TLS, run.APIKey, run.Flags = s.tls, s.keys["operator"], append(append(run.Flags, s.flags...), "--sqs-credentials-file", credential)
		to.TLS, to.Key, to.FoeKey = s.tls, s.keys["operator"], s.keys["reader"]
		to.Keys = append(slices.Sorted(maps.Values(s.keys)), "", "claimq_nobody", "x\ty")
		to.Keys = append(to.Keys, slices.Repeat([]string{to.Key}, len(to.Keys))...) // otherwise most would be refused for their key
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cluster, err := procs.Start(starting, run)
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	view, err := procs.View(ctx, cluster.Nodes[0])
	if err != nil {
		return nil, err
	}
	identities := make(map[string]string, fuzzNodes)
	for _, v := range view.Nodes {
		identities[v.NodeID] = v.UUID
	}
	pids := make([]int, fuzzNodes)
	for i, n := range cluster.Nodes {
		key, err := readNodeKey(n.DataDir)
		if err != nil {
			return nil, err
		}
		to.Nodes = append(to.Nodes, fuzz.Node{Node: n, UUID: identities[n.ID], Key: key})
		pids[i] = n.PID()
	}
	to.Running = func(i int) error {
		n := cluster.Nodes[i]
		if !n.Running() || n.PID() != pids[i] {
			return fmt.Errorf("it ended with exit code %d:\n%s", n.ExitCode(), n.LogTail(40))
		}
		if log := n.Output(); strings.Contains(log, "panic") {
			return fmt.Errorf("it logged a panic:\n%s", log[max(strings.Index(log, "panic")-200, 0):min(strings.Index(log, "panic")+3000, len(log))])
		}
		return nil
	}
	return fuzz.Run(ctx, to)
}

// readNodeKey returns the private key of the node with that data folder.
func readNodeKey(dataDir string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "node.key"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("node.key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("node.key: %w", err)
	}
	node, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("node.key is a %T", key)
	}
	return node, nil
}
