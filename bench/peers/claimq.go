package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

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

// startClaimq starts three nodes of claimq. It uses them through package client, with one Client and one Worker with
// a slot per consumer.
func startClaimq(ctx context.Context, path string, s *site) (queue, error) {
	cluster, err := procs.Start(ctx, procs.Config{Binary: path, Dir: s.dir, Nodes: 3, Flags: []string{"--log-level", "warn"}})
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { cluster.Close(); return nil })
	c, err := client.New(client.Config{Endpoints: cluster.URLs()})
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, c.Close)
	return func(_ context.Context, n int, handle func([]byte), of *load) error {
		// Each run has its own type. A claim that the last Worker no longer waits for may still get a task and hold
		// it until its lease ends.
		taskType := "peers-" + rand.Text()
		w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: n})
		if err != nil {
			return err
		}
		client.Handle(w, taskType, func(_ context.Context, job *client.Job[json.RawMessage]) error {
			handle(job.Params)
			return nil
		})
		of.consume, of.settled = w.Run, func() int64 { return w.Stats().Completed }
		for range n {
			of.submit = append(of.submit, func(ctx context.Context, task []byte) error {
				_, err := c.Submit(ctx, client.Task{TaskType: taskType, Payload: task})
				return err
			})
		}
		return nil
	}, nil
}
