package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

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

// startClaimqNodes starts three nodes of claimq, and returns a client of them.
func startClaimqNodes(ctx context.Context, path string, s *site) (*client.Client, error) {
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
	return c, nil
}

// startClaimq starts three nodes of claimq. It uses them through package client, with one Client and one Worker with
// a slot per consumer.
func startClaimq(ctx context.Context, path string, s *site) (queue, error) {
	c, err := startClaimqNodes(ctx, path, s)
	if err != nil {
		return nil, err
	}
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

// startClaimqTenants starts claimq. Each tenancy has a new type. To tell tenants apart the type is fair, and each
// tenant has a share key.
func startClaimqTenants(ctx context.Context, path string, s *site) (tenancies, error) {
	c, err := startClaimqNodes(ctx, path, s)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, apart bool, _ int) (tenancy, error) {
		taskType := "peers-" + rand.Text()
		if apart {
			if _, err := c.SetType(ctx, taskType, client.TypeSettings{Fair: &apart}); err != nil {
				return tenancy{}, err
			}
		}
		return tenancy{
			submit: func(ctx context.Context, tenant int, tasks [][]byte) error {
				all := make([]client.Task, len(tasks))
				for i, task := range tasks {
					all[i] = client.Task{TaskType: taskType, Payload: task}
					if apart {
						all[i].ShareKey = tenantName(tenant)
					}
				}
				if _, err := c.SubmitMany(ctx, all); err != nil { // which names each task
					first, _, _ := strings.Cut(err.Error(), "\n")
					return errors.New(first)
				}
				return nil
			},
			work: func(ctx context.Context, workers int, handle func(task []byte)) error {
				w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: workers})
				if err != nil {
					return err
				}
				client.Handle(w, taskType, func(_ context.Context, job *client.Job[json.RawMessage]) error {
					handle(job.Params)
					return nil
				})
				return w.Run(ctx)
			},
			end: func(context.Context) error { return nil }, // what is left costs claims of other types nothing
		}, nil
	}, nil
}
