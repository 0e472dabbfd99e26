// Command fanout is a complete program that does one piece of work in steps. It fetches a text, examines it in three
// ways at the same time, and merges the results. The steps wait for each other in the cluster and not in this
// process. So this process and others like it may die at any moment, and the rest goes on.
//
//	claimq dev
//	go run ./examples/fanout
//	go run ./examples/fanout README.md
//	go run ./examples/fanout -by-claim
//	go run ./examples/fanout -work
//
// It connects to the nodes in CLAIMQ_ENDPOINTS. With -by-claim there is no merge step: two processors compete for it,
// and one does it (processor.go). With -work it submits nothing and does the steps of others. The steps are in
// steps.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
)

const (
	workerCount    = 3
	processorCount = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	c, err := client.New(client.Config{})
	if err == nil {
		err = run(ctx, c, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

// run submits the work, does it with its own workers, and prints the result. It closes the client.
func run(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
	defer c.Close()
	flags := flag.NewFlagSet("fanout", flag.ContinueOnError)
	byClaim := flags.Bool("by-claim", false, "two processors compete for putting the parts together")
	workOnly := flags.Bool("work", false, "submit nothing, do the steps of others until it is stopped")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := &program{c: c, out: out}
	if *workOnly {
		return p.work(ctx, fmt.Sprintf("worker-%d", os.Getpid()))
	}
	path := ""
	if flags.NArg() > 0 {
		var err error
		if path, err = filepath.Abs(flags.Arg(0)); err != nil {
			return err
		}
	}
	task, err := describe(path, *byClaim)
	if err != nil {
		return err
	}
	// One request: all steps are there, or none. The client gives the task a key, so
	// that it is there once although the answer may be lost and the request repeated.
	w, err := c.SubmitWorkflow(ctx, task)
	if err != nil {
		return err
	}
	p.say("submitted task %s with %d steps", w.ID, len(w.Steps))

	working, stopWork := context.WithCancelCause(ctx)
	var workers, processors sync.WaitGroup
	start := func(group *sync.WaitGroup, name string, fn func(ctx context.Context, name string) error) {
		group.Go(func() {
			if err := fn(working, name); err != nil && working.Err() == nil {
				stopWork(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	for i := range workerCount {
		start(&workers, fmt.Sprintf("worker-%d-%d", os.Getpid(), i+1), p.work)
	}
	if *byClaim {
		for i := range processorCount {
			start(&processors, fmt.Sprintf("processor-%d-%d", os.Getpid(), i+1), func(ctx context.Context, name string) error { return p.process(ctx, name, w) })
		}
	}
	ended, err := c.Wait(working, w.ID)
	if err != nil {
		stopWork(err)
		err = context.Cause(working) // the first cause
	}
	processors.Wait() // they see the end too
	stopWork(nil)
	workers.Wait()
	if err != nil {
		return err
	}
	return p.report(ended, *byClaim)
}

// describe returns the task with its steps and their dependencies.
func describe(path string, byClaim bool) (client.Task, error) {
	task := client.Task{TaskType: "fanout"}
	var errs []error
	step := func(name, taskType string, params any, after ...string) {
		t, err := client.NewTask(taskType, params)
		errs = append(errs, err)
		t.Lease = 5 * time.Second // a worker that dies holds its step no longer than this
		task.AddStep(name, t, after...)
	}
	step("fetch", fetchType, fetchParams{Path: path})
	for _, what := range []string{"lines", "words", "longest"} {
		step(what, lookType, lookParams{At: what}, "fetch")
	}
	if byClaim {
		task.Finalize = client.FinalizeClaim
	} else {
		step("merge", mergeType, struct{}{}, "lines", "words", "longest")
	}
	return task, errors.Join(errs...)
}

// program holds what the goroutines share.
type program struct {
	c *client.Client

	mu  sync.Mutex // guards out
	out io.Writer
}

func (p *program) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// work does steps of this task and others like it until ctx ends.
func (p *program) work(ctx context.Context, name string) error {
	w, err := client.NewWorker(p.c, client.WorkerConfig{ID: name, Concurrency: 1, Retry: func(*client.Task, error) time.Duration { return 0 }})
	if err != nil {
		return err
	}
	handle(w, p, fetchType, fetch)
	handle(w, p, lookType, p.look)
	handle(w, p, mergeType, p.merge)
	return w.Run(ctx)
}

// handle makes do the worker's handler for a type of steps, and prints the outcome of each step.
func handle[P any](w *client.Worker, p *program, taskType string, do func(context.Context, *client.Job[P]) (any, error)) {
	client.Handle(w, taskType, func(ctx context.Context, job *client.Job[P]) error {
		result, err := do(ctx, job)
		if err != nil {
			p.say("%s failed at step %s: %v", w.ID(), job.Task.StepName, err)
			return err // it is tried again while it has attempts left
		}
		p.say("%s did step %s", w.ID(), job.Task.StepName)
		job.SetResult(result)
		return nil
	})
}

// report prints how the task ended.
func (p *program) report(task *client.Task, byClaim bool) error {
	if task.Status != client.StatusCompleted {
		return fmt.Errorf("task %s is %s: %s", task.ID, task.Status, task.Error)
	}
	result := task.Result
	if !byClaim { // a task that ends by itself has the results of all steps
		var steps map[string]json.RawMessage
		if err := json.Unmarshal(result, &steps); err != nil {
			return fmt.Errorf("decode the result of task %s: %w", task.ID, err)
		}
		result = steps["merge"]
	}
	p.say("task %s is completed: %s", task.ID, result)
	return nil
}
