package typescript

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
)

// startNodes starts three nodes, and returns them with what a program needs to reach them.
func startNodes(t *testing.T) (c *procs.Cluster, env []string) {
	t.Helper()
	env = environment(t)
	binary := strings.TrimPrefix(env[0], "CLAIMQ_BIN=")
	c, err := procs.Start(t.Context(), procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, append(slices.Clip(env), "CLAIMQ_ENDPOINTS="+strings.Join(c.URLs(), ","))
}

// Submits go on over killed leaders: each key has one task in the end, and a stream that went on
// over the same kills told of each once.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	count := strconv.Itoa(proof.Count(2000, 20_000))
	node := runtimes(t)["node22"]
	dir := built(t)
	c, env := startNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, node[0], filepath.Join(dir, "build", "programs", "load.js"), count)
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
