package main

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// inOneQueue is a tenancy in memory: the oldest task comes first. deliver decides what becomes of each task.
func inOneQueue(deliver func(task []byte) [][]byte, refused error) tenancy {
	tasks := make(chan []byte, 1000)
	return tenancy{
		submit: func(_ context.Context, tenant int, all [][]byte) error {
			for _, task := range all {
				tasks <- task
			}
			if tenant > 0 {
				return refused
			}
			return nil
		},
		work: func(ctx context.Context, workers int, handle func(task []byte)) error {
			var working sync.WaitGroup
			for range workers {
				working.Go(func() {
					for {
						select {
						case task := <-tasks:
							for _, task := range deliver(task) {
								handle(task)
							}
						case <-ctx.Done():
							return
						}
					}
				})
			}
			working.Wait()
			return nil
		},
	}
}

// The wait of a task behind a backlog is that of the backlog. A repeated or foreign task ends the run, and so does an error.
func TestFairness(t *testing.T) {
	t.Parallel()
	f := fairness{backlog: 200, first: 40, tenants: 3, each: 2, workers: 4, handling: time.Millisecond}
	once := func(task []byte) [][]byte { return [][]byte{task} }
	w, err := f.measure(t.Context(), inOneQueue(once, nil))
	if err != nil || len(w.waits) != 6 || w.rate <= 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	for _, ms := range w.waits { // each of four workers has 40 tasks of 1 ms before
		if ms < 20 {
			t.Errorf("a task waited for %v ms behind the backlog", ms)
		}
	}
	for name, c := range map[string]struct {
		of   tenancy
		want string
	}{
		"twice":   {inOneQueue(func(task []byte) [][]byte { return [][]byte{task, task} }, nil), "of them more than once"},
		"foreign": {inOneQueue(func(task []byte) [][]byte { return [][]byte{task, []byte("1")} }, nil), "were none of these"},
		"refused": {inOneQueue(once, errors.New("no")), "submit: no ("},
	} {
		if _, err := f.measure(t.Context(), c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A small run measures each of the means that is installed, and nothing stays of what was started.
func TestRunFair(t *testing.T) {
	t.Chdir("../..") // the binary is built there
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c, err := arguments([]string{"--fair", "--binary", binary, "--dir", dir, "--rounds", "1"}, io.Discard)
	if err != nil || c.fair == nil || *c.fair != asMeasured() {
		t.Fatalf("%+v, %v", c, err)
	}
	*c.fair = fairness{backlog: 2000, first: 50, tenants: 3, each: 2, workers: 4, handling: time.Millisecond}
	found, missing, err := c.find.all(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.run(t.Context(), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (claimq|RabbitMQ), .* \| .* \| [\d,]+ \(.*\) \| [\d,]+ \(.*\) \| [\d,]*[1-9][\d,]* \(.*\) \|$`).FindAllString(out.String(), -1)
	if len(rows) != 2*len(found) || strings.Count(out.String(), "Not measured: ") != len(missing) {
		t.Errorf("%d rows of %d systems in\n%s", len(rows), len(found), out.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
