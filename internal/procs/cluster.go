package procs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
)

// nodeCountMax bounds a cluster on one machine.
const nodeCountMax = 9

// Config says what to run.
type Config struct {
	Binary string // path of claimq
	Dir    string // for data and logs; it exists
	Nodes  int    // 1 to 9, including those that join
	// Joining is the number of nodes, the last ones, that do not belong to the initial
	// cluster: each joins the others when it is first started. StartAll does not start
	// those that have never been started.
	Joining int
	// Flags are passed to each server in addition to its own.
	Flags []string
	// Env is added to the environment of each server, as NAME=value. GOGC is not passed on
	// from this process, so it has to be in Env to be set.
	Env []string
	// EnvOf, if not nil, returns additions for the i-th node only.
	EnvOf func(i int) []string

	// Pipes makes the nodes print to pipes, which are copied to their files.
	Pipes bool

	// TLS, if not nil, is used for the nodes' APIs; Flags must make them use TLS. APIKey is
	// the key for calls to them; Flags must make it known to them.
	TLS    *tls.Config
	APIKey string

	// The rest is for nodes that do not simply run on loopback.

	// Hosts, if not empty, are the hosts of the nodes, one each.
	Hosts []Host
	// DataDirs, if not empty, are the nodes' data folders, one each. Otherwise they are in
	// Dir.
	DataDirs []string
	// Dial connects to the nodes' APIs. nil is an ordinary dialer.
	Dial DialFunc
}

// DialFunc connects like (*net.Dialer).DialContext.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Host runs a node elsewhere than directly on this machine.
type Host interface {
	// Addr is the host's IP address.
	Addr() string
	// Start starts the command on the host, like cmd.Start.
	Start(cmd *exec.Cmd) error
}

// Cluster is a group of nodes configured with the same --initial-cluster.
type Cluster struct {
	Nodes   []*Node
	release func() // of ports; nil: it has none
}

// The ports of nodes that have separate hosts.
const (
	hostHTTPPort = 7400
	hostPeerPort = 7401
)

// JoinKey is the nodes' secret. It may be public because they listen on loopback, or on
// hosts that cannot be reached from outside.
const JoinKey = "a-join-key-for-nodes-on-one-machine"

// New prepares the nodes without starting them. The caller must close the cluster.
func New(cfg Config) (*Cluster, error) {
	if cfg.Nodes < 1 || cfg.Nodes > nodeCountMax {
		return nil, fmt.Errorf("a cluster of %d nodes: 1 to %d are possible", cfg.Nodes, nodeCountMax)
	}
	if cfg.Joining < 0 || cfg.Joining >= cfg.Nodes {
		return nil, fmt.Errorf("%d of %d nodes join: one at least must be there before", cfg.Joining, cfg.Nodes)
	}
	if cfg.Hosts != nil && len(cfg.Hosts) != cfg.Nodes || cfg.DataDirs != nil && len(cfg.DataDirs) != cfg.Nodes {
		return nil, fmt.Errorf("%d nodes, %d hosts, %d data folders", cfg.Nodes, len(cfg.Hosts), len(cfg.DataDirs))
	}
	binary, err := filepath.Abs(cfg.Binary)
	if err != nil {
		return nil, fmt.Errorf("find the binary: %w", err)
	}
	keyFile := filepath.Join(cfg.Dir, "join.key")
	if err := os.WriteFile(keyFile, []byte(JoinKey+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the join key: %w", err)
	}
	c := &Cluster{}
	for i := range cfg.Nodes {
		id := fmt.Sprintf("n%d", i+1)
		n := &Node{
			ID: id, DataDir: filepath.Join(cfg.Dir, id), LogPath: filepath.Join(cfg.Dir, id+".log"),
			tokenFile: filepath.Join(cfg.Dir, id+".token"),
			binary:    binary, env: cfg.Env, pipes: cfg.Pipes, dial: cfg.Dial, tls: cfg.TLS, key: cfg.APIKey,
		}
		if cfg.DataDirs != nil {
			n.DataDir = cfg.DataDirs[i]
		}
		if cfg.EnvOf != nil {
			n.env = append(slices.Clone(n.env), cfg.EnvOf(i)...)
		}
		c.Nodes = append(c.Nodes, n)
	}
	if err := c.place(cfg); err != nil {
		return nil, err
	}
	c.configure(cfg, keyFile)
	return c, nil
}

// place chooses the nodes' addresses.
func (c *Cluster) place(cfg Config) error {
	if cfg.Hosts != nil {
		for i, n := range c.Nodes {
			n.host = cfg.Hosts[i]
			n.HTTPAddr = fmt.Sprintf("%s:%d", n.host.Addr(), hostHTTPPort)
			n.PeerAddr = fmt.Sprintf("%s:%d", n.host.Addr(), hostPeerPort)
		}
		return nil
	}
	ports, release, err := TakePorts(2 * cfg.Nodes)
	if err != nil {
		return err
	}
	c.release = release
	for i, n := range c.Nodes {
		n.HTTPAddr = fmt.Sprintf("127.0.0.1:%d", ports[2*i])
		n.PeerAddr = fmt.Sprintf("127.0.0.1:%d", ports[2*i+1])
	}
	return nil
}

// configure writes the nodes' arguments.
func (c *Cluster) configure(cfg Config, keyFile string) {
	var members, peers []string
	for _, n := range c.Nodes {
		members, peers = append(members, n.ID+"="+n.PeerAddr), append(peers, n.PeerAddr)
	}
	first := cfg.Nodes - cfg.Joining
	for i, n := range c.Nodes {
		n.Args = []string{
			"server", "--node-id", n.ID, "--data-dir", n.DataDir, "--http-addr", n.HTTPAddr, "--peer-addr", n.PeerAddr,
			"--join-key-file", keyFile,
		}
		if n.joins = i >= first; n.joins {
			n.Args = append(n.Args, "--join", strings.Join(peers[:first], ","), "--join-token-file", n.tokenFile)
		} else {
			n.Args = append(n.Args, "--initial-cluster", strings.Join(members[:first], ","))
		}
		if cfg.Hosts != nil {
			n.Args = append(n.Args, "--insecure") // not on loopback, but no one else can reach it
		}
		n.Args = append(n.Args, cfg.Flags...)
	}
}

// Start calls New, starts all nodes and waits until each is ready.
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

// StartAll starts the nodes that do not run, and waits until all are ready.
func (c *Cluster) StartAll(ctx context.Context) error {
	for _, n := range c.Nodes {
		if n.Running() || n.joins && n.PID() == 0 {
			continue
		}
		if err := n.Start(); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if n.PID() == 0 {
			continue
		}
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

// ErrNoLeader is returned when no node leads, or the nodes do not know a leader.
var ErrNoLeader = errors.New("no leader")

// Leader returns the node that leads according to the answer of the highest term.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	return c.leaderAmong(ctx, c.Nodes)
}

// leaderAmong is Leader for the given nodes only, because a paused node would not answer,
// and a deposed one would not know.
func (c *Cluster) leaderAmong(ctx context.Context, nodes []*Node) (*Node, error) {
	views := make([]wire.Cluster, len(nodes))
	var asking sync.WaitGroup
	for i, n := range nodes {
		if n.Running() {
			// Nodes that do not answer are ignored.
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

// WaitLeader waits until a node leads that is not in except. Those are not asked either.
func (c *Cluster) WaitLeader(ctx context.Context, except ...*Node) (*Node, error) {
	asked := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *Node) bool { return slices.Contains(except, n) })
	var leader *Node
	err := pause.Until(ctx, pollInterval, func() (err error) {
		leader, err = c.leaderAmong(ctx, asked)
		if err == nil && slices.Contains(except, leader) {
			err = ErrNoLeader
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for a leader: %w", err)
	}
	return leader, nil
}

// Close kills every running node and releases the ports.
func (c *Cluster) Close() {
	_ = KillAll(c.Nodes...) // failures cannot be reported
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

// WriteKeys creates an API key without a rate for each name, and writes the file for the nodes
// to path. may says what each key may do, as the role and task_types of an entry. It returns
// the keys by name.
func WriteKeys(path string, may map[string]string) (keys map[string]string, err error) {
	keys = map[string]string{}
	var entries strings.Builder
	entries.WriteString("keys:\n")
	for _, name := range slices.Sorted(maps.Keys(may)) {
		keys[name] = "claimq_" + strings.ToLower(rand.Text()+rand.Text())
		fmt.Fprintf(&entries, "  - {name: %s, key_sha256: %x, rate_limit_per_minute: 0, %s}\n", name, sha256.Sum256([]byte(keys[name])), may[name])
	}
	return keys, os.WriteFile(path, []byte(entries.String()), 0o600)
}
