package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
)

// leaderWait limits how long the cluster may be without a leader at the start, or not know the address of a node.
const leaderWait = 30 * time.Second

// findCluster returns the URLs of the leader and of all nodes.
func findCluster(ctx context.Context, endpoints []string) (leader string, nodes []string, err error) {
	deadline := time.Now().Add(leaderWait)
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	err = fmt.Errorf("no endpoint")
	for time.Now().Before(deadline) {
		for _, e := range endpoints {
			var body []byte
			if body, err = get(e + "/api/cluster?consistency=stale"); err != nil {
				continue
			}
			var c wire.Cluster
			if err = json.Unmarshal(body, &c); err != nil {
				continue
			}
			switch leader, nodes = leaderOf(c); {
			case leader == "":
				err = fmt.Errorf("%s knows no leader", e)
			case slices.Contains(nodes, ""):
				err = fmt.Errorf("%s does not know where every node is", e)
			default:
				return leader, nodes, nil
			}
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	}
	return "", nil, fmt.Errorf("find the leader: %w", err)
}

func leaderOf(c wire.Cluster) (leader string, nodes []string) {
	for _, n := range c.Nodes {
		nodes = append(nodes, n.HTTPAddr)
		if n.NodeID == c.Leader {
			leader = n.HTTPAddr
		}
	}
	return leader, nodes
}

func get(url string) ([]byte, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(url)
	if err := fasthttp.DoTimeout(req, resp, 5*time.Second); err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d", url, resp.StatusCode())
	}
	return bytes.Clone(resp.Body()), nil
}

// usage is the resources used by a server's process, according to its metrics.
type usage struct {
	cpuSeconds float64
	rssBytes   float64 // resident
	logBytes   float64 // of entries that it has proposed
}

// usageOf returns the usage of each node that answers.
func usageOf(nodes []string) map[string]usage {
	all := make(map[string]usage, len(nodes))
	for _, n := range nodes {
		body, err := get(n + "/metrics")
		if err != nil {
			continue
		}
		var u usage
		lines := bufio.NewScanner(bytes.NewReader(body))
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), " ")
			f, err := strconv.ParseFloat(value, 64)
			switch {
			case err != nil:
			case name == "process_cpu_seconds_total":
				u.cpuSeconds = f
			case name == "process_resident_memory_bytes":
				u.rssBytes = f
			case name == "claimq_batch_bytes_sum":
				u.logBytes = f
			}
		}
		all[n] = u
	}
	return all
}

// loadCPU returns the seconds of CPU that this process has used.
func loadCPU() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}
