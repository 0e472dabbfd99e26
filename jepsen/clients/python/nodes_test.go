package python

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
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
		"PATH=" + filepath.Dir(binary) + ":" + filepath.Dir(interpreter) + ":" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1",
	}
}

// Programs go on while leader after leader is killed: one that submits by threads and by
// asyncio, of which each key has one task in the end and a stream that went on over the same
// kills told of each once; and the examples of docs/python.md and of both READMEs, each of which
// loses the leader at its first call.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	count := strconv.Itoa(proof.Count(1000, 5000))
	c, _, env := startNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	loaded := make(chan error, 1)
	go func() {
		out, err := command(ctx, env, "tests/programs/load.py", count).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("load.py: %w\n%s", err, out)
		}
		t.Logf("%s", out)
		loaded <- err
	}()
	docs := command(ctx, env, "-X", "dev", "tests/programs/docs.py", "../../docs/python.md", "../../README.md", "README.md")
	if err := killForDocs(ctx, c, docs); err != nil {
		t.Error(err)
	}
	if err := <-loaded; err != nil {
		t.Error(err)
	}
}

// command returns a program of Python.
func command(ctx context.Context, env []string, arguments ...string) *exec.Cmd {
	program := exec.CommandContext(ctx, interpreter, arguments...)
	program.Env = append(os.Environ(), env...)
	return program
}

// killForDocs runs docs.py and kills the leader where it asks for that.
func killForDocs(ctx context.Context, c *procs.Cluster, docs *exec.Cmd) error {
	said, err := docs.StdoutPipe()
	if err != nil {
		return err
	}
	goOn, err := docs.StdinPipe()
	if err != nil {
		return err
	}
	var out strings.Builder
	docs.Stderr = &out
	if err := docs.Start(); err != nil {
		return err
	}
	kills := 0
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if lines.Text() != "-- kill the leader" {
			continue
		}
		kills++
		if err := killLeader(ctx, c, goOn); err != nil {
			return fmt.Errorf("kill %d: %w", kills, err)
		}
	}
	if err := docs.Wait(); err != nil {
		return fmt.Errorf("docs.py, after %d kills: %w\n%s", kills, err, out.String())
	}
	if kills < 11 {
		return fmt.Errorf("%d examples called a node, not the 11 that do", kills)
	}
	return nil
}

// killLeader kills the leader, lets a program go on, and starts the node again a second later.
func killLeader(ctx context.Context, c *procs.Cluster, goOn io.Writer) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := leader.Kill(); err != nil {
		return err
	}
	if _, err := io.WriteString(goOn, "\n"); err != nil {
		return err
	}
	_ = pause.For(ctx, time.Second) // the others go on alone; ctx's end ends the program, too
	return leader.StartReady(ctx)
}
