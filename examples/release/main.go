// Command release tests a release on two systems at the same time, packs what both have found, and ships it once you
// have approved. The steps wait for each other, and the last one for you, in the cluster and not in this process.
//
//	claimq dev
//	go run ./examples/release
//
// It connects to the nodes in CLAIMQ_ENDPOINTS. release.sh, release.py and release.ts are the same program in other
// languages.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/claimq/claimq/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	c, err := client.New(client.Config{})
	if err == nil {
		err = run(ctx, c, os.Stdin, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// found holds what a step has found, and decision the signal that the last one waits for.
type (
	found struct {
		Passed int `json:"passed"`
	}
	decision struct {
		Approved bool `json:"approved"`
	}
)

// run submits the release, does its steps, asks on in whether to ship it, and prints how it ended. It closes the client.
func run(ctx context.Context, c *client.Client, in io.Reader, out io.Writer) error {
	defer c.Close()
	release, err := describe()
	if err != nil {
		return err
	}
	w, err := c.SubmitWorkflow(ctx, release)
	if err != nil {
		return err
	}
	worker, err := newWorker(c)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- worker.Run(working) }()
	err = approve(ctx, c, w, in, out)
	stop()
	return errors.Join(err, <-worked)
}

// describe returns the release with its steps.
func describe() (client.Task, error) {
	release := client.Task{TaskType: "release"}
	var errs []error
	step := func(taskType string, params any) client.Task {
		t, err := client.NewTask(taskType, params)
		errs = append(errs, err)
		return t
	}
	release.AddStep("linux", step("release.test", map[string]string{"on": "linux"}))
	release.AddStep("mac", step("release.test", map[string]string{"on": "mac"}))
	release.AddStep("pack", step("release.pack", struct{}{}), "linux", "mac") // once both have completed
	ship := step("release.ship", struct{}{})
	ship.WaitForSignal = 24 * time.Hour
	release.AddStep("ship", ship, "pack")
	return release, errors.Join(errs...)
}

// approve waits for the pack, asks, hands the last step the answer, and waits for the end. The program may die at any
// point and another one may ask: the first answer counts.
func approve(ctx context.Context, c *client.Client, w *client.Workflow, in io.Reader, out io.Writer) error {
	pack, err := c.Wait(ctx, w.Steps["pack"])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "release %s: %s. Ship it? (y/n)\n", w.ID, pack.Result)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	answer, err := json.Marshal(decision{Approved: strings.TrimSpace(line) == "y"})
	if err != nil {
		return err
	}
	if _, differs, err := c.Signal(ctx, w.Steps["ship"], answer); err != nil {
		return err
	} else if differs {
		fmt.Fprintln(out, "another answer came first, which counts")
	}
	ended, err := c.Wait(ctx, w.Steps["ship"])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s%s\n", ended.Status, ended.Result, ended.Error)
	return nil
}

// newWorker returns a worker that does the steps of all releases.
func newWorker(c *client.Client) (*client.Worker, error) {
	w, err := client.NewWorker(c, client.WorkerConfig{IncludeDependencies: true})
	if err != nil {
		return nil, err
	}
	client.Handle(w, "release.test", func(_ context.Context, job *client.Job[struct{ On string }]) error {
		job.SetResult(found{Passed: map[string]int{"linux": 40, "mac": 2}[job.Params.On]})
		return nil
	})
	client.Handle(w, "release.pack", func(ctx context.Context, job *client.Job[struct{}]) error {
		results, err := c.DependencyResults(ctx, job.Task)
		if err != nil {
			return err
		}
		var all found
		for name, result := range results {
			var one found
			if err := json.Unmarshal(result, &one); err != nil {
				return client.Permanent(fmt.Errorf("the result of %s: %w", name, err))
			}
			all.Passed += one.Passed
		}
		job.SetResult(all)
		return nil
	})
	client.Handle(w, "release.ship", func(_ context.Context, job *client.Job[struct{}]) error {
		var by decision
		if err := json.Unmarshal(job.Task.Signal, &by); err != nil {
			return client.Permanent(fmt.Errorf("the signal: %w", err))
		}
		if !by.Approved {
			return client.Permanent(errors.New("it was not approved"))
		}
		job.SetResult(map[string]bool{"shipped": true})
		return nil
	})
	return w, nil
}
