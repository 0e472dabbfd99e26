package procs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Errors of calls to nodes.
var (
	// ErrRefused is returned when a node answers that something was not done.
	ErrRefused = errors.New("refused")
	// ErrCommand is returned when a command did not end with exit code 0.
	ErrCommand = errors.New("the command failed")
	// ErrNoMetric is returned when a node has no metric of that name.
	ErrNoMetric = errors.New("no such metric")
)

// At returns a node that another program runs, with its API at the address, for calls with
// the key.
func At(httpAddr, key string) *Node { return &Node{HTTPAddr: httpAddr, key: key} }

// viewTimeout bounds View, because a paused node does not answer.
const viewTimeout = 2 * time.Second

// Ask makes one request to the node's API, with body as JSON unless it is nil, and decodes
// the answer, which must be a success, into answer unless that is nil. Errors: ErrRefused
// with the node's text, or the connection's.
func (n *Node) Ask(ctx context.Context, method, path string, body, answer any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	raw, err := n.ask(ctx, method, path, text)
	if err != nil || answer == nil {
		return err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("read the answer of %s to %s: %w", n.ID, path, err)
	}
	return nil
}

// ask makes one request and returns the body of the answer.
func (n *Node) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, n.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if n.key != "" {
		req.Header.Set("X-API-Key", n.key)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.dial, TLSClientConfig: n.tls}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", n.ID, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%w: %s %s at %s: status %d: %s", ErrRefused, method, path, n.ID, resp.StatusCode, raw)
	}
	return raw, err
}

// View returns the node's view of the cluster.
func View(ctx context.Context, n *Node) (view wire.Cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	return view, n.Ask(ctx, http.MethodGet, "/api/cluster", nil, &view)
}

// Metrics returns the node's metrics; those with labels by their name and labels.
func (n *Node) Metrics(ctx context.Context) (map[string]float64, error) {
	raw, err := n.ask(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); ok && err == nil && !strings.HasPrefix(name, "#") {
			values[name] = value
		}
	}
	return values, nil
}

// Metric returns one of the node's metrics. Errors: ErrNoMetric, or as of Ask.
func (n *Node) Metric(ctx context.Context, name string) (float64, error) {
	values, err := n.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	value, ok := values[name]
	if !ok {
		return 0, fmt.Errorf("%w: %s of %s", ErrNoMetric, name, n.ID)
	}
	return value, nil
}

// Command runs the command line of the binary, as an operator of the running ones of the
// nodes, and returns its output. Errors: ErrCommand, or why it could not be run.
func Command(ctx context.Context, binary string, nodes []*Node, args ...string) (printed string, err error) {
	var urls []string
	for _, n := range nodes {
		if n.Running() {
			urls = append(urls, n.URL())
		}
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "CLAIMQ_ENDPOINTS="+strings.Join(urls, ","))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: claimq %s: %w: %s", ErrCommand, strings.Join(args, " "), err, out)
	} else if err != nil {
		err = fmt.Errorf("run claimq %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}
