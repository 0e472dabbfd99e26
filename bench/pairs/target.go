package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/jepsen/procs"
)

// target is a cluster, as it is measured.
type target struct {
	cluster *procs.Cluster
	url     string // of its leader
	task    string // URL of a task, as the leader answers it
}

// prepare finds the leader, and submits the task that is read.
func (t *target) prepare(ctx context.Context) error {
	leader, err := t.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := leader.WaitReady(ctx); err != nil {
		return err
	}
	t.url = leader.URL()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url+"/api/tasks", strings.NewReader(`{"task_type":"read","params":"a task of some bytes"}`))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct{ Task struct{ ID uint64 } }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Task.ID == 0 {
		return fmt.Errorf("submit a task: %d %s", resp.StatusCode, text)
	}
	t.task = fmt.Sprintf("%s/api/tasks/%d", t.url, answer.Task.ID)
	return nil
}

// reads is the figure of reading the target's task for so long.
func (t *target) reads(during time.Duration) (figure, error) {
	return t.measure(func() (rate, count float64, err error) {
		rate, err = readRate(t.task, conns, during)
		return rate, rate * during.Seconds(), err
	})
}

// measure runs a load that returns its rate a second and how many it did, and takes the
// nodes' CPU time beside it.
func (t *target) measure(load func() (rate, count float64, err error)) (figure, error) {
	before, err := t.cpuTime()
	if err != nil {
		return figure{}, err
	}
	rate, count, err := load()
	if err != nil {
		return figure{}, err
	}
	after, err := t.cpuTime()
	if err != nil {
		return figure{}, err
	}
	return figure{rate: rate, cpu: float64((after - before).Microseconds()) / count}, nil
}

// cpuTime returns what CPU time all nodes together have had.
func (t *target) cpuTime() (sum time.Duration, err error) {
	for _, n := range t.cluster.Nodes {
		took, err := cpuTime(n.PID())
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, nil
}

// readRate reads the URL over so many connections, each with one request under way, and
// returns how many a second were answered.
func readRate(url string, conns int, during time.Duration) (float64, error) {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	client := &fasthttp.HostClient{Addr: host, MaxConns: conns}
	defer client.CloseIdleConnections()
	var count atomic.Int64
	var workers sync.WaitGroup
	failed := make([]error, conns)
	for i, end := 0, time.Now().Add(during); i < conns; i++ {
		workers.Go(func() {
			var req fasthttp.Request
			var resp fasthttp.Response
			req.SetRequestURI(url)
			for time.Now().Before(end) && failed[i] == nil {
				if failed[i] = client.Do(&req, &resp); failed[i] == nil && resp.StatusCode() != http.StatusOK {
					failed[i] = fmt.Errorf("GET %s: %d %s", url, resp.StatusCode(), bytes.Clone(resp.Body()))
				}
				count.Add(1)
			}
		})
	}
	workers.Wait()
	return float64(count.Load()) / during.Seconds(), errors.Join(failed...)
}
