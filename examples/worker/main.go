// Command worker is a producer and a worker in one process. It submits a number of letters and writes several of them
// at a time into a box. The box refuses the late write of a claim that is over. If you kill the leader while it runs,
// it goes on.
//
//	claimq dev
//	go run ./examples/worker
//	go run ./examples/worker -letters 5000
//
// It connects to the nodes in CLAIMQ_ENDPOINTS. docs/workers.md says why this is safe.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/claimq/claimq/client"
)

// letter holds the parameters of a task.
type letter struct {
	To string `json:"to"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	letters := flag.Int("letters", 500, "how many letters to write")
	flag.Parse()
	c, err := client.New(client.Config{})
	if err == nil {
		err = run(ctx, c, *letters, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run submits n letters and works until they are written or ctx ends. It closes the client.
func run(ctx context.Context, c *client.Client, n int, out io.Writer) error {
	defer c.Close()
	if err := submit(ctx, c, n); err != nil {
		return err
	}
	fmt.Fprintf(out, "submitted %d letters\n", n)

	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 8, Logger: slog.Default()})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b := box{full: n, stop: stop, letters: map[string]written{}}
	client.Handle(w, "letter", func(ctx context.Context, job *client.Job[letter]) error {
		select {
		case <-time.After(20 * time.Millisecond): // this stands for the work
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := b.put(job.Task.ID, job.Token, "Dear "+job.Params.To); err != nil {
			return err
		}
		job.SetResult("written")
		return nil
	}, client.WithTimeout(time.Minute))
	if err := w.Run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %d letters\n", b.count())
	return nil
}

// submit submits n letters. Each is there once afterwards, even if an answer is lost.
func submit(ctx context.Context, c *client.Client, n int) error {
	tasks := make([]client.Task, n)
	for i := range tasks {
		var err error
		if tasks[i], err = client.NewTask("letter", letter{To: fmt.Sprintf("reader %d", i+1)}); err != nil {
			return err
		}
	}
	_, err := c.SubmitMany(ctx, tasks)
	return err
}
