package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
)

const (
	busySlots   = 1_000
	busyBatch   = 250
	busyBacklog = 3 * busySlots // waiting or being worked on, at most
	busyLease   = 2 * time.Second
	busyWorkMax = 4 * time.Second // longer than a lease, so that extends count
	busyKills   = 10
	// busyKillsShort is the number of kills in make test.
	busyKillsShort = 2
	busyTimeout    = 5 * time.Minute
)

// One Worker with 1,000 slots, all of them busy, while the leader is killed repeatedly: every
// acknowledged task is completed, and no two handlers believe to hold the same task.
func TestBusyWorker(t *testing.T) {
	kills, began := proof.Count(busyKillsShort, busyKills), time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), busyTimeout)
	defer cancel()
	cluster, err := procs.New(procs.Config{Binary: binary(), Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if err := pause.Within(ctx, startTimeout, cluster.StartAll); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Endpoints: cluster.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: busySlots, Lease: busyLease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	holds := &holdBook{held: map[string]context.Context{}, tokens: map[string]int64{}}
	client.Handle(w, "busy", holds.handle)

	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	producing, stopSubmits := context.WithCancel(ctx)
	defer stopSubmits()
	ended, submitted := make(chan error, 1), make(chan int, 1)
	go func() { ended <- w.Run(working) }()
	go func() { submitted <- submitAll(producing, c, w) }()

	for range kills {
		if err := await(ctx, func() bool { return w.Stats().Running >= busySlots*9/10 }); err != nil {
			t.Fatalf("the slots do not get busy: %v, %+v", err, w.Stats())
		}
		t.Logf("after %v: %+v", time.Since(began).Round(time.Millisecond), w.Stats())
		if err := pause.Within(ctx, stepTimeout, func(ctx context.Context) error { return killOne(ctx, cluster) }); err != nil {
			t.Fatal(err)
		}
	}
	stopSubmits()
	count := <-submitted
	completed := func() bool {
		busy, err := c.Type(ctx, "busy")
		return err == nil && busy.Counts[client.StatusCompleted] >= int64(count)
	}
	if err := await(ctx, completed); err != nil {
		t.Errorf("not all of %d tasks are completed: %v, %+v", count, err, w.Stats())
	}
	stopWork()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	busy, err := c.Type(ctx, "busy")
	if err != nil {
		t.Fatal(err)
	}
	for status, n := range busy.Counts {
		if status != client.StatusCompleted && n != 0 {
			t.Errorf("%d tasks are %s", n, status)
		}
	}
	if got := busy.Counts[client.StatusCompleted]; got != int64(count) || len(holds.tokens) != count {
		t.Errorf("%d tasks are acknowledged, %d completed, %d were handled", count, got, len(holds.tokens))
	}
	for _, wrong := range holds.wrong {
		t.Error(wrong)
	}
	t.Logf("%d tasks, %d leaders killed: %d held twice at a time; worker %+v, client %+v", count, kills, len(holds.wrong), w.Stats(), c.Stats())
}

// killOne kills the leader, and starts it again once another one leads.
func killOne(ctx context.Context, cluster *procs.Cluster) error {
	leader, err := cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := leader.Kill(); err != nil {
		return err
	}
	if _, err := cluster.WaitLeader(ctx, leader); err != nil {
		return err
	}
	return cluster.StartAll(ctx)
}

// submitAll submits enough tasks to keep the worker busy until ctx ends, each until it is
// acknowledged, and returns their number.
func submitAll(ctx context.Context, c *client.Client, w *client.Worker) (count int) {
	for {
		wanted := func() bool { return int64(count)-w.Stats().Completed < busyBacklog }
		if await(ctx, wanted) != nil {
			return count
		}
		tasks := make([]client.Task, busyBatch)
		for i := range tasks {
			tasks[i] = client.Task{
				TaskType: "busy", Payload: []byte("1"), IdempotencyKey: fmt.Sprint("busy-", count+i), MaxAttempts: client.UnlimitedAttempts, Backoff: &client.NoBackoff,
			}
		}
		// The end of ctx does not interrupt a submit, because then its outcome would be
		// unknown.
		for tries := 0; ; tries++ {
			if _, err := c.SubmitMany(context.WithoutCancel(ctx), tasks); err == nil {
				break
			} else if tries == 10 {
				return count + len(tasks) // missing ones show later
			}
		}
		count += len(tasks)
	}
}

// await waits until is returns true, or ctx ends.
func await(ctx context.Context, is func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// holdBook records which handlers believe to hold which tasks.
type holdBook struct {
	mu     sync.Mutex
	held   map[string]context.Context // of the latest handler, until just before it returns
	tokens map[string]int64           // the last of each task
	wrong  []string
}

func (b *holdBook) handle(ctx context.Context, job *client.Job[int]) error {
	b.begin(ctx, job.Task.ID, job.Token)
	defer b.end(ctx, job.Task.ID)
	timer := time.NewTimer(rand.N(busyWorkMax))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin checks that no other handler still believes to hold the task: a context checks the
// clock when it is asked.
func (b *holdBook) begin(ctx context.Context, id string, token int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if other := b.held[id]; other != nil && other.Err() == nil {
		b.wrong = append(b.wrong, fmt.Sprintf("task %s is held by the tokens %d and %d", id, b.tokens[id], token))
	}
	if token <= b.tokens[id] {
		b.wrong = append(b.wrong, fmt.Sprintf("task %s: after the token %d comes %d", id, b.tokens[id], token))
	}
	b.held[id], b.tokens[id] = ctx, token
}

func (b *holdBook) end(ctx context.Context, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[id] == ctx {
		delete(b.held, id)
	}
}
