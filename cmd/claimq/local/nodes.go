package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// localStopTimeout limits how long a child may take to stop before it is killed. A leader first hands over, which may
// take 5 s.
const localStopTimeout = 15 * time.Second

// localPoll is the interval at which a starting cluster is asked whether it is ready.
const localPoll = 50 * time.Millisecond

// localCluster is a cluster of child processes on loopback, for claimq dev and claimq bench. Its methods are for one
// goroutine.
type localCluster struct {
	binary string
	nodes  []*localNode
	exits  chan *localNode // nodes whose process has ended; with a buffer for all
	wg     sync.WaitGroup  // one for each running process
}

// localNode is one child of a localCluster.
type localNode struct {
	id      string
	url     string
	logPath string
	args    []string

	process *os.Process
	exit    error // why it ended; set before it is sent to exits
	down    bool  // it has ended for good; set by the reader of exits
}

// localOptions configure a local cluster.
type localOptions struct {
	binary   string   // the claimq executable
	dir      string   // with one folder and one log per node
	count    int      // number of nodes
	basePort int      // node k uses basePort+10k and the next one; 0 = any free ones
	extra    []string // further flags for every node
}

// lockFolder keeps other clusters out of dir until it is closed or this process ends.
func lockFolder(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%w %s", errFolderInUse, dir), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// errFolderInUse is returned by lockFolder for a folder that another process uses.
var errFolderInUse = errors.New("another `claimq dev` runs in the folder")

// startLocalCluster starts the nodes. The caller calls stop.
func startLocalCluster(o localOptions) (*localCluster, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	ports, err := localPorts(o)
	if err != nil {
		return nil, err
	}
	keyFile, err := JoinKey(o.dir)
	if err != nil {
		return nil, err
	}
	list := make([]string, o.count)
	for i := range list {
		list[i] = fmt.Sprintf("n%d=127.0.0.1:%d", i+1, ports[2*i+1])
	}
	c := &localCluster{binary: o.binary, exits: make(chan *localNode, o.count)}
	for i := range o.count {
		id := fmt.Sprintf("n%d", i+1)
		n := &localNode{
			id:      id,
			url:     fmt.Sprintf("http://127.0.0.1:%d", ports[2*i]),
			logPath: filepath.Join(o.dir, id+".log"),
			args: append([]string{
				"server", "--" + term.UntilStdinEnds, "--node-id", id, "--data-dir", filepath.Join(o.dir, id),
				"--http-addr", fmt.Sprintf("127.0.0.1:%d", ports[2*i]),
				"--peer-addr", fmt.Sprintf("127.0.0.1:%d", ports[2*i+1]),
			}, o.extra...),
		}
		if !slices.Contains(o.extra, "--no-raft") {
			n.args = append(n.args, "--initial-cluster", strings.Join(list, ","), "--join-key-file", keyFile)
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		if err := c.start(n); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

// JoinKey returns the path of the folder's join key, which it creates if it is missing.
func JoinKey(dir string) (string, error) {
	path := filepath.Join(dir, "join.key")
	if _, err := os.Stat(path); err == nil {
		return filepath.Abs(path)
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("make join key: %w", err)
	}
	if err := os.WriteFile(path, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write join key: %w", err)
	}
	return filepath.Abs(path)
}

// Ports are chosen below the range that kernels use for outgoing connections, one of which could take the port before
// the node listens.
const (
	localPortMin   = 10_000
	localPortCount = 10_000
	localPortTries = 1_000
)

// localPorts returns two ports per node: HTTP, peer.
func localPorts(o localOptions) ([]int, error) {
	ports := make([]int, 0, 2*o.count)
	if o.basePort != 0 {
		for i := range o.count {
			ports = append(ports, o.basePort+10*i, o.basePort+10*i+1)
		}
		return ports, checkFree(ports)
	}
	for tries := 0; len(ports) < 2*o.count; tries++ {
		port := localPortMin + mathrand.IntN(localPortCount)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil && tries >= localPortTries {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		if err != nil {
			continue
		}
		defer l.Close() // all are held until all are found, so that they differ
		ports = append(ports, port)
	}
	return ports, nil
}

// checkFree returns an error that names the first port in use.
func checkFree(ports []int) error {
	for _, port := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
		_ = l.Close()
	}
	return nil
}

// start starts the node's process and a goroutine that waits for its end.
func (c *localCluster) start(n *localNode) error {
	log, err := os.OpenFile(n.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", n.id, err)
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(c.binary, n.args...)
	cmd.Stdout, cmd.Stderr = log, log
	// Its own process group, so that Ctrl-C reaches only this process, which stops the nodes in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// However this process ends, even by kill -9 or a closed terminal, this pipe is closed then, and the node stops.
	if _, err := cmd.StdinPipe(); err != nil {
		return fmt.Errorf("make a pipe to %s: %w", n.id, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.id, err)
	}
	n.process = cmd.Process
	c.wg.Go(func() {
		n.exit = cmd.Wait()
		c.exits <- n
	})
	return nil
}

// waitReady returns once every node reports that it is ready. A node that has ended is an error even then: another
// process may answer at its address.
func (c *localCluster) waitReady(ctx context.Context) error {
	tick := time.NewTicker(localPoll)
	defer tick.Stop()
	for _, n := range c.nodes {
		for !Ready(ctx, n.url) {
			select {
			case <-tick.C:
			case dead := <-c.exits:
				return endedAtStart(dead)
			case <-ctx.Done():
				return fmt.Errorf("node %s is not ready (its log is %s): %w", n.id, n.logPath, ctx.Err())
			}
		}
	}
	select {
	case dead := <-c.exits:
		return endedAtStart(dead)
	default:
		return nil
	}
}

func endedAtStart(n *localNode) error {
	return fmt.Errorf("node %s ended while starting (%w): %s", n.id, exitError(n.exit), lastLine(n.logPath))
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// Ready reports whether the node at url reports that it is ready.
func Ready(ctx context.Context, url string) bool {
	_, status, err := httpGet(ctx, url+"/readyz")
	return err == nil && status == http.StatusOK
}

// clusterOf asks the node at url for its view of the cluster.
func clusterOf(ctx context.Context, url string) (wire.Cluster, error) {
	var cl wire.Cluster
	body, status, err := httpGet(ctx, url+"/api/cluster?consistency=stale")
	if err != nil {
		return cl, err
	}
	if status != http.StatusOK {
		return cl, fmt.Errorf("GET %s/api/cluster: status %s", url, strconv.Itoa(status))
	}
	return cl, json.Unmarshal(body, &cl)
}

// httpGet returns at most 16 MiB of the answer.
func httpGet(ctx context.Context, url string) (body []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	return body, resp.StatusCode, err
}

// stop ends every process, first by SIGTERM, and waits for all.
func (c *localCluster) stop() {
	for _, n := range c.nodes {
		if n.process != nil {
			_ = n.process.Signal(syscall.SIGTERM) // no effect if it has ended
		}
	}
	timer := time.AfterFunc(localStopTimeout, func() {
		for _, n := range c.nodes {
			if n.process != nil {
				_ = n.process.Kill()
			}
		}
	})
	defer timer.Stop()
	c.wg.Wait()
}
