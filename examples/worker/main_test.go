package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds a test that runs processes.
const patience = 3 * time.Minute

// output collects the program's output. It calls first at the first line.
type output struct {
	strings.Builder
	once  sync.Once
	first func()
}

func (o *output) Write(p []byte) (int, error) {
	o.once.Do(o.first)
	return o.Builder.Write(p)
}

// All letters are written and their tasks completed, even if the leader dies meanwhile.
func TestWorker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := procs.Start(ctx, procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	c, err := client.New(client.Config{Endpoints: nodes.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	out := &output{first: func() {
		leader, err := nodes.Leader(ctx)
		if err == nil {
			err = leader.Kill()
		}
		if err != nil {
			t.Errorf("kill the leader: %v", err)
		}
	}}
	const letters = 300
	if err := run(ctx, c, letters, out); err != nil || !strings.Contains(out.String(), "wrote 300 letters") {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	if c, err = client.New(client.Config{Endpoints: nodes.URLs()}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	counts := map[client.TaskStatus]int{}
	for task, err := range c.Tasks(ctx, client.Filter{TaskType: "letter"}) {
		if err != nil {
			t.Fatal(err)
		}
		counts[task.Status]++
	}
	if counts[client.StatusCompleted] != letters {
		t.Errorf("tasks by status: %v", counts)
	}
}

// A write under a claim that is over is refused.
func TestBox(t *testing.T) {
	t.Parallel()
	b := box{full: 2, letters: map[string]written{}}
	if err := b.put("1", 5, "a"); err != nil {
		t.Fatal(err)
	}
	if err := b.put("1", 4, "late"); err == nil || b.letters["1"].text != "a" {
		t.Errorf("%v, %v", err, b.letters)
	}
	if err := b.put("1", 6, "again"); err != nil || b.letters["1"].text != "again" || b.count() != 1 {
		t.Errorf("%v, %v", err, b.letters)
	}
}
