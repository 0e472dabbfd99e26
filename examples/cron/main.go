// Command cron writes a report at each time of a schedule. The cluster submits one task for each time, even if the
// leader changes, and any number of these processes do the tasks.
//
//	claimq dev
//	go run ./examples/cron -every 5s
//	go run ./examples/cron -cron "30 2 * * *" -timezone Europe/Prague
//
// Without -every and -cron it does the tasks of a schedule that already exists. It connects to the nodes in
// CLAIMQ_ENDPOINTS. README.md says what to look at.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/claimq/claimq/client"
)

const (
	scheduleName = "nightly-report"
	taskType     = "report"
	// reportTimeout bounds an attempt.
	reportTimeout = 10 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var plan client.Schedule
	flag.StringVar(&plan.Cron, "cron", "", "when to write a report, as \"30 2 * * *\"")
	flag.StringVar(&plan.Timezone, "timezone", "", "of -cron, as Europe/Prague; not given: UTC")
	flag.DurationVar(&plan.Every, "every", 0, "in place of -cron: how often, a second or more")
	dir := flag.String("dir", "reports", "folder of the reports; all who write them share it")
	flag.Parse()
	c, err := client.New(client.Config{})
	if err == nil {
		err = run(ctx, c, plan, *dir, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// run sets the schedule, if plan has times, and writes reports until ctx ends. It closes the client.
func run(ctx context.Context, c *client.Client, plan client.Schedule, dir string, out io.Writer) error {
	defer c.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if plan.Cron != "" || plan.Every != 0 {
		if err := setSchedule(ctx, c, plan, out); err != nil {
			return err
		}
	}
	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 1, Logger: slog.Default()})
	if err != nil {
		return err
	}
	r := &reporter{c: c, dir: dir, out: out}
	client.Handle(w, taskType, r.handle, client.WithTimeout(reportTimeout))
	return w.Run(ctx)
}

// setSchedule sets the schedule to plan's times. Every process may do so at its start: setting the same schedule
// again keeps its next time.
func setSchedule(ctx context.Context, c *client.Client, plan client.Schedule, out io.Writer) error {
	task, err := client.NewTask(taskType, struct{}{})
	if err != nil {
		return err
	}
	task.MaxAttempts = 10
	task.Backoff = &client.Backoff{Initial: time.Second, Max: 10 * time.Minute, Factor: 2}
	plan.Name, plan.Task = scheduleName, task
	set, err := c.SetSchedule(ctx, plan)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the next report is due at %s\n", set.NextRunAt.Format(time.RFC3339))
	return nil
}

// reporter writes reports.
type reporter struct {
	c   *client.Client
	dir string

	mu  sync.Mutex // guards out
	out io.Writer
}

// handle writes the report of a task.
func (r *reporter) handle(ctx context.Context, job *client.Job[struct{}]) error {
	due, err := r.dueOf(ctx, job.Task)
	if err != nil {
		return err
	}
	rep, err := r.count(ctx, due)
	if err != nil {
		return err
	}
	rep.Task = job.Task.ID
	if err := save(r.dir, rep, job.Token); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "task %s: the report that was due at %s is in %s\n", rep.Task, due.Format(time.RFC3339), fileName(r.dir, due))
	return nil
}

// dueOf returns the time of the schedule that the task is for. The task may run later than that: it may have waited
// for a leader, a worker or a second attempt.
func (r *reporter) dueOf(ctx context.Context, task *client.Task) (time.Time, error) {
	// The schedule submits no other task until this one has ended, so this is the last one.
	s, err := r.c.GetSchedule(ctx, scheduleName)
	if err != nil {
		return time.Time{}, err
	}
	if s.LastTaskID != task.ID {
		return time.Time{}, client.Permanent(fmt.Errorf("the task is not of the schedule %s", scheduleName))
	}
	return s.LastRunAt.UTC(), nil
}
