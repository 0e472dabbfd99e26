package client

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// WorkerInfo is a worker that holds claims, or was heard from in the last
// minutes.
type WorkerInfo struct {
	ID         string
	Claimed    int       // how many claims it holds
	TaskIDs    []string  // of the first 100 of them
	LastSeenAt time.Time // its last call, as far as this leader knows; zero: unknown
}

// Workers returns who holds claims and who was heard from, by id.
func (c *Client) Workers(ctx context.Context) ([]WorkerInfo, error) {
	var w wire.Workers
	if err := c.get(ctx, "/api/workers", &w); err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	workers := make([]WorkerInfo, len(w.Workers))
	for i := range w.Workers {
		one := &w.Workers[i]
		workers[i] = WorkerInfo{ID: one.WorkerID, Claimed: one.Claimed, LastSeenAt: timeOf(one.LastSeenAt)}
		for _, id := range one.TaskIDs {
			workers[i].TaskIDs = append(workers[i].TaskIDs, formatID(id))
		}
	}
	return workers, nil
}
