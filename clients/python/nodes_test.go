package python

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/procs"
)

// startNodes starts three nodes with the flags, and returns them with what a program needs to reach
// them.
func startNodes(t *testing.T, flags ...string) (c *procs.Cluster, binary string, env []string) {
	t.Helper()
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err = procs.Start(t.Context(), procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, binary, []string{
		"CLAIMQ_ENDPOINTS=" + strings.Join(c.URLs(), ","), "CLAIMQ_BIN=" + binary, "PYTHONPATH=" + absolute(t, "src"),
	}
}

// Submits by threads and by asyncio go on over killed leaders: each key has one task in the
// end, and a stream that went on over the same kills told of each once.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	count := "5000"
	if testing.Short() {
		count = "1000"
	}
	c, _, env := startNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, interpreter, "tests/programs/load.py", count)
	program.Env = append(os.Environ(), env...)
	var out strings.Builder
	program.Stdout, program.Stderr = &out, &out
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	kills := 0
	for {
		leader, err := c.WaitLeader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Kill(); err != nil {
			t.Fatal(err)
		}
		kills++
		_ = pause.For(ctx, time.Second) // the others go on alone; ctx's end ends the program, too
		if err := leader.StartReady(ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			t.Logf("%d leaders killed: %s", kills, out.String())
			return
		case <-time.After(2 * time.Second):
		}
	}
}

// The examples of docs/python.md and of README run.
func TestDocs(t *testing.T) {
	t.Parallel()
	_, _, env := startNodes(t)
	run(t, ".", env, interpreter, "-X", "dev", "tests/programs/docs.py", "../../docs/python.md", "../../README.md")
}
