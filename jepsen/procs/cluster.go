package procs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// nodeCountMax bounds a cluster on one machine.
const nodeCountMax = 9

// Config says what to run.
type Config struct {
	Binary string // path of claimq
	Dir    string // for data and logs; it exists
	Nodes  int    // 1 to 9
	// Flags are given to each server beside its own.
	Flags []string
	// Env is added to the environment of each server, as NAME=value.
	Env []string
}

// Cluster is a number of nodes that were configured with the same
// --initial-cluster.
type Cluster struct {
	Nodes []*Node
	ports []port
}

// joinKey is the nodes' secret. They listen on loopback only.
const joinKey = "a-join-key-for-nodes-on-one-machine"

// New prepares the nodes and starts none. The caller closes the cluster.
func New(cfg Config) (*Cluster, error) {
	if cfg.Nodes < 1 || cfg.Nodes > nodeCountMax {
		return nil, fmt.Errorf("a cluster of %d nodes: 1 to %d are possible", cfg.Nodes, nodeCountMax)
	}
	binary, err := filepath.Abs(cfg.Binary)
	if err != nil {
		return nil, fmt.Errorf("find the binary: %w", err)
	}
	keyFile := filepath.Join(cfg.Dir, "join.key")
	if err := os.WriteFile(keyFile, []byte(joinKey+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the join key: %w", err)
	}
	ports, err := takePorts(2 * cfg.Nodes)
	if err != nil {
		return nil, err
	}
	c := &Cluster{ports: ports}
	var members []string
	for i := range cfg.Nodes {
		id := fmt.Sprintf("n%d", i+1)
		n := &Node{
			ID:       id,
			DataDir:  filepath.Join(cfg.Dir, id),
			LogPath:  filepath.Join(cfg.Dir, id+".log"),
			HTTPAddr: fmt.Sprintf("127.0.0.1:%d", ports[2*i].number),
			PeerAddr: fmt.Sprintf("127.0.0.1:%d", ports[2*i+1].number),
			binary:   binary,
			env:      cfg.Env,
		}
		members = append(members, id+"="+n.PeerAddr)
		c.Nodes = append(c.Nodes, n)
	}
	for _, n := range c.Nodes {
		n.Args = append([]string{
			"server", "--node-id", n.ID, "--data-dir", n.DataDir, "--http-addr", n.HTTPAddr, "--peer-addr", n.PeerAddr,
			"--initial-cluster", strings.Join(members, ","), "--join-key-file", keyFile,
		}, cfg.Flags...)
	}
	return c, nil
}

// Start is New, and starts all nodes and waits until each is ready.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.StartAll(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// StartAll starts the nodes that do not run and waits until all are ready.
func (c *Cluster) StartAll(ctx context.Context) error {
	for _, n := range c.Nodes {
		if n.Running() {
			continue
		}
		if err := n.Start(); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if err := n.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// URLs returns the address of each node's API.
func (c *Cluster) URLs() []string {
	var urls []string
	for _, n := range c.Nodes {
		urls = append(urls, n.URL())
	}
	return urls
}

// ErrNoLeader is returned when no node leads, or the nodes do not know.
var ErrNoLeader = errors.New("no leader")

// Leader returns the node that leads by what the nodes say: the answer of the
// highest term counts.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	return c.leaderAmong(ctx, c.Nodes)
}

// leaderAmong is Leader, asking the given nodes alone. A paused node would not
// answer, and a deposed one not know.
func (c *Cluster) leaderAmong(ctx context.Context, nodes []*Node) (*Node, error) {
	views := make([]wire.Cluster, len(nodes))
	var asking sync.WaitGroup
	for i, n := range nodes {
		if n.Running() {
			// Who does not answer has nothing to say of the leader.
			asking.Go(func() { views[i], _ = View(ctx, n) })
		}
	}
	asking.Wait()
	var best wire.Cluster
	for _, view := range views {
		if view.Leader != "" && view.Term > best.Term {
			best = view
		}
	}
	i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.ID == best.Leader })
	if i < 0 || !c.Nodes[i].Running() {
		return nil, ErrNoLeader
	}
	return c.Nodes[i], nil
}

// WaitLeader waits until a node leads that is none of except, which are not
// asked either.
func (c *Cluster) WaitLeader(ctx context.Context, except ...*Node) (*Node, error) {
	asked := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *Node) bool { return slices.Contains(except, n) })
	for {
		leader, err := c.leaderAmong(ctx, asked)
		if err == nil && !slices.Contains(except, leader) {
			return leader, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a leader: %w", context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

// viewTimeout bounds a question to one node. A node itself waits a second for
// others that do not answer.
const viewTimeout = 2 * time.Second

// View asks the node what it sees of the cluster.
func View(ctx context.Context, n *Node) (wire.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL()+"/api/cluster", nil)
	if err != nil {
		return wire.Cluster{}, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return wire.Cluster{}, fmt.Errorf("ask %s for the cluster: %w", n.ID, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var view wire.Cluster
	if err := json.NewDecoder(resp.Body).Decode(&view); err != nil {
		return wire.Cluster{}, fmt.Errorf("ask %s for the cluster: %w", n.ID, err)
	}
	if !view.Success {
		return wire.Cluster{}, fmt.Errorf("ask %s for the cluster: status %d", n.ID, resp.StatusCode)
	}
	return view, nil
}

// Close kills every node that still runs and gives the ports back.
func (c *Cluster) Close() {
	for _, n := range c.Nodes {
		if n.Running() {
			_ = n.Kill() // it may have ended by itself meanwhile
		}
	}
	releasePorts(c.ports)
	c.ports = nil
}
