package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/procs"
)

// claimqNodes is three nodes of claimq, used by package client: one Client, and one
// Worker with as many slots as there are to be consumers.
type claimqNodes struct {
	cluster *procs.Cluster
	c       *client.Client
}

func claimq() system {
	return system{
		name: "claimq", program: "claimq", install: "make build",
		durable: "fsync on 2 of 3 nodes; so does an acknowledgement",
		version: func(ctx context.Context, path string) (string, error) {
			return say(ctx, regexp.MustCompile(`claimq (\S+)`), path, "--version")
		},
		start: startClaimq,
	}
}

func startClaimq(ctx context.Context, path, dir string) (queue, error) {
	cluster, err := procs.Start(ctx, procs.Config{Binary: path, Dir: dir, Nodes: 3, Flags: []string{"--log-level", "warn"}})
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, n := range cluster.Nodes {
		urls = append(urls, n.URL())
	}
	c, err := client.New(client.Config{Endpoints: urls})
	if err != nil {
		cluster.Close()
		return nil, err
	}
	return &claimqNodes{cluster, c}, nil
}

func (q *claimqNodes) prepare(_ context.Context, n int, handle func([]byte)) (load, error) {
	// A type of its own: a claim for which the last Worker no longer waits may be given a
	// task, and has it until its lease ends.
	taskType := "peers-" + rand.Text()
	w, err := client.NewWorker(q.c, client.WorkerConfig{Concurrency: n})
	if err != nil {
		return load{}, err
	}
	client.Handle(w, taskType, func(_ context.Context, job *client.Job[json.RawMessage]) error {
		handle(job.Params)
		return nil
	})
	of := load{consume: w.Run, settled: func() int64 { return w.Stats().Completed }, close: func() {}}
	for range n {
		of.submit = append(of.submit, func(ctx context.Context, task []byte) error {
			_, err := q.c.Submit(ctx, client.Task{TaskType: taskType, Payload: task})
			return err
		})
	}
	return of, nil
}

func (q *claimqNodes) close() error {
	err := q.c.Close()
	q.cluster.Close()
	return err
}
