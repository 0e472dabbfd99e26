package client_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/claimq/claimq/client"
)

// workServer stands in for a cluster; it has a single mail to send.
func workServer() *httptest.Server {
	mux := http.NewServeMux()
	first := make(chan struct{}, 1)
	first <- struct{}{}
	mux.HandleFunc("POST /api/tasks/claim", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			fmt.Fprint(w, `{"success":true,"tasks":[{"id":17,"task_type":"mail","params":{"to":"ada@example.org"},"status":"claimed","attempts":1,"max_attempts":3,
				"worker_id":"w1","claim_token":5,"lease_remaining_ms":30000}]}`)
		default:
			fmt.Fprint(w, `{"success":true,"tasks":[]}`)
		}
	})
	mux.HandleFunc("POST /api/tasks/17/{verb}", func(w http.ResponseWriter, r *http.Request) {
		if verb := r.PathValue("verb"); verb != "extend" {
			fmt.Printf("the server is told: %s\n", verb)
		}
		fmt.Fprint(w, `{"success":true,"task":{"id":17,"status":"completed"},"claimed":{"task":null},"lease_remaining_ms":30000}`)
	})
	return httptest.NewServer(mux)
}

type Mail struct {
	To string `json:"to"`
}

func ExampleWorker() {
	server := workServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 20, StopWait: 20 * time.Second})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
		fmt.Printf("task %s, attempt %d: mail to %s, fenced by token %d\n", job.Task.ID, job.Attempt, job.Params.To, job.Token)
		job.SetResult(map[string]bool{"sent": true})
		stop()
		return nil
	})
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// task 17, attempt 1: mail to ada@example.org, fenced by token 5
	// the server is told: complete
}

// The handler's error settles the task.
func ExampleHandle() {
	server := workServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	w, err := client.NewWorker(c, client.WorkerConfig{ID: "w1", Timeout: time.Minute})
	if err != nil {
		panic(err)
	}

	errNoSuchAddress, errBusy := errors.New("no such address"), errors.New("busy")
	send := func(context.Context, Mail) error { return errBusy }
	ctx, stop := context.WithCancel(context.Background())
	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
		defer stop()
		err := send(ctx, job.Params)
		switch {
		case errors.Is(err, errNoSuchAddress):
			return client.Permanent(err) // another attempt cannot help
		case errors.Is(err, errBusy):
			return client.Snooze(5 * time.Minute) // later, without counting the attempt
		case err != nil:
			return err // the attempt fails
		}
		receipt, err := client.NewTask("receipt", job.Params)
		if err != nil {
			return err
		}
		job.Then(receipt) // submitted together with the completion
		return nil
	}, client.WithConcurrency(5), client.WithTimeout(10*time.Second))
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the server is told: release
}

// Middleware measures and logs each attempt.
func ExampleWorker_Use() {
	server := workServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	w, err := client.NewWorker(c, client.WorkerConfig{})
	if err != nil {
		panic(err)
	}

	w.Use(func(ctx context.Context, job *client.Job[[]byte], next func(context.Context) error) error {
		begin := time.Now()
		err := next(ctx)
		fmt.Printf("%s with %s: %v, in less than an hour: %v\n", job.Task.TaskType, job.Params, err, time.Since(begin) < time.Hour)
		return err
	})
	ctx, stop := context.WithCancel(context.Background())
	client.Handle(w, "mail", func(context.Context, *client.Job[Mail]) error {
		stop()
		return nil
	})
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// mail with {"to":"ada@example.org"}: <nil>, in less than an hour: true
	// the server is told: complete
}

// Lines logged by a handler name their task and attempt.
func ExampleJob_Log() {
	server := workServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	w, err := client.NewWorker(c, client.WorkerConfig{ID: "w1", Logger: logger})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
		job.Log().InfoContext(ctx, "sent", "to", job.Params.To)
		stop()
		return nil
	})
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg="claimq: worker has begun" worker_id=w1 task_types=[mail] concurrency=10
	// level=INFO msg=sent worker_id=w1 task_id=17 task_type=mail attempt=1 claim_token=5 to=ada@example.org
	// the server is told: complete
}

// With package expvar a program publishes the counters at /debug/vars.
func ExampleWorker_Stats() {
	server := workServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	w, err := client.NewWorker(c, client.WorkerConfig{ID: "w1"})
	if err != nil {
		panic(err)
	}
	counts := expvar.NewMap("claimq")
	counts.Set("client", expvar.Func(func() any { return c.Stats() }))
	counts.Set("worker", expvar.Func(func() any { return w.Stats() }))
	ctx, stop := context.WithCancel(context.Background())
	client.Handle(w, "mail", func(context.Context, *client.Job[Mail]) error {
		stop()
		return nil
	})
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(counts.Get("worker"))
	fmt.Println("lost answers:", c.Stats().Unknown)
	// Output:
	// the server is told: complete
	// {"slots":10,"running":0,"claimed":1,"completed":1,"failed":0,"released":0,"retries":0,"lost":0,"panics":0}
	// lost answers: 0
}
