package clienttest_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// Resize are the parameters of the tasks of the type resize.
type Resize struct {
	Image string `json:"image"`
	Width int    `json:"width"`
}

// resize stands for the work. Whatever it writes to refuses a token older than the
// one that it has.
func resize(_ context.Context, r Resize, token int64) error {
	fmt.Printf("%s to %d, token %d\n", r.Image, r.Width, token)
	return nil
}

// The code of docs/from-faktory.md: a producer and a worker.
func Example_fromFaktory() {
	var t example
	defer t.end()
	s := clienttest.New(&t)
	ctx, stop := context.WithCancel(context.Background())
	finished := func() { s.Await("1", client.StatusCompleted); stop() }
	err := func() error {
		c, err := client.New(client.Config{Endpoints: []string{s.URL()}})
		if err != nil {
			return err
		}
		defer c.Close()
		task, err := client.NewTask("resize", Resize{Image: "cat.jpg", Width: 128})
		if err != nil {
			return err
		}
		task.IdempotencyKey = "resize-cat.jpg-128"
		task.MaxAttempts = 26 // Faktory: the first and 25 retries
		if _, err := c.Submit(ctx, task); err != nil {
			return err
		}

		w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 20})
		if err != nil {
			return err
		}
		client.Handle(w, "resize", func(ctx context.Context, job *client.Job[Resize]) error {
			return resize(ctx, job.Params, job.Token) // nil is ACK, an error is FAIL
		})
		go finished()
		return w.Run(ctx)
	}()
	fmt.Println(err)
	// Output:
	// cat.jpg to 128, token 1
	// <nil>
}

// The worker of docs/from-river.md.
func Example_fromRiver() {
	var t example
	defer t.end()
	s := clienttest.New(&t)
	ctx := context.Background()
	for _, r := range []Resize{{"cat.jpg", 128}, {"dog.jpg", 64}} {
		task, err := client.NewTask("resize", r)
		if err != nil {
			t.Fatalf("task: %v", err)
		}
		if _, err := s.Client().Submit(ctx, task); err != nil {
			t.Fatalf("submit: %v", err)
		}
	}

	w, err := client.NewWorker(s.Client(), client.WorkerConfig{Concurrency: 100, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	client.Handle(w, "resize", func(ctx context.Context, job *client.Job[Resize]) error {
		if job.Params.Width < 100 {
			return client.Snooze(time.Hour)
		}
		return resize(ctx, job.Params, job.Token)
	})
	runCtx, stop := context.WithCancel(ctx)
	stopped := make(chan error)
	go func() { stopped <- w.Run(runCtx) }()
	s.Await("1", client.StatusCompleted)
	s.Await("2", client.StatusScheduled)
	stop()
	fmt.Println(<-stopped)
	// Output:
	// cat.jpg to 128, token 1
	// <nil>
}

// The Go code of claimq in the guides docs/from-*.md must be that of the examples above, which are run.
func TestGuide_From(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("from_test.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		known[strings.TrimSpace(line)] = true
	}
	for _, page := range []string{"from-faktory.md", "from-river.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, block := range regexp.MustCompile("(?s)With claimq[^\n]*:\n\n```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				lines++
				if !known[strings.TrimSpace(line)] {
					t.Errorf("docs/%s: no example has the line %q", page, line)
				}
			}
		}
		if lines < 7 {
			t.Errorf("docs/%s: found only %d lines of Go", page, lines)
		}
	}
}
