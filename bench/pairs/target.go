package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/claimq/claimq/bench/reads"
	"github.com/claimq/claimq/internal/procs"
)

// target is a cluster to measure.
type target struct {
	cluster *procs.Cluster
	url     string // the leader's
	task    string // path of a task
}

// prepare finds the leader and submits the task to read.
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
	t.task = fmt.Sprintf("/api/tasks/%d", answer.Task.ID)
	return nil
}

// reads measures reads of the target's task.
func (t *target) reads(during time.Duration) (figure, error) {
	return t.measure(func() (rate, count float64, err error) {
		rate, err = reads.Rate(t.url, conns, during, func(int, int) string { return t.task })
		return rate, rate * during.Seconds(), err
	})
}

// measure runs a load that returns its rate per second and its count. It also measures the nodes' CPU time during the
// load.
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

// cpuTime returns the CPU time that all nodes together have used.
func (t *target) cpuTime() (sum time.Duration, err error) {
	for _, n := range t.cluster.Nodes {
		took, err := procs.CPUTime(n.PID())
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, nil
}
