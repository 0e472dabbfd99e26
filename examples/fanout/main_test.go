package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds a test that runs processes.
const patience = 3 * time.Minute

// asProgram in the environment makes the test's binary run as the program.
const asProgram = "CLAIMQ_EXAMPLE_FANOUT"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// startNodes starts three nodes on this machine.
func startNodes(t *testing.T) (context.Context, *procs.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := procs.Start(ctx, procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	return ctx, nodes
}

// watched collects the program's output. It calls first at the first line.
type watched struct {
	bytes.Buffer
	first func()
}

func (w *watched) Write(p []byte) (int, error) {
	if w.first != nil {
		w.first()
		w.first = nil
	}
	return w.Buffer.Write(p)
}

// runProgram runs the program and returns its output.
func runProgram(ctx context.Context, t *testing.T, nodes *procs.Cluster, first func(), args ...string) (string, error) {
	t.Helper()
	c, err := client.New(client.Config{Endpoints: nodes.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	out := &watched{first: first}
	err = run(ctx, c, args, out)
	return out.String(), err
}

// The program finishes both with and without -by-claim, even if the leader dies meanwhile.
func TestFanout(t *testing.T) {
	t.Parallel()
	ctx, nodes := startNodes(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("one two\nthree, four\nfive\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	killLeader := func() {
		leader, err := nodes.Leader(ctx)
		if err == nil {
			err = leader.Kill()
		}
		if err != nil {
			t.Errorf("kill the leader: %v", err)
		}
	}
	for _, test := range []struct {
		name      string
		first     func() // called when the task has been submitted
		args      []string
		want      string // expected output
		finalized int    // by a processor
	}{
		{"built in", nil, nil, `is completed: {"lines":4,"longest":"workers","words":29}`, 0},
		{"by claim", nil, []string{"-by-claim", text}, `is completed: {"lines":3,"longest":"three","words":5}`, 1},
		{"with the leader killed", killLeader, []string{text}, `is completed: {"lines":3,"longest":"three","words":5}`, 0},
	} {
		out, err := runProgram(ctx, t, nodes, test.first, test.args...)
		if err != nil || !strings.Contains(out, test.want) {
			t.Fatalf("%s: %v, want %q in\n%s", test.name, err, test.want, out)
		}
		steps := regexp.MustCompile(`did step (\w+)`).FindAllStringSubmatch(out, -1)
		if last := steps[len(steps)-1][1]; steps[0][1] != "fetch" || (last == "merge") != (test.finalized == 0) {
			t.Errorf("%s: out of order:\n%s", test.name, out)
		}
		if n := strings.Count(out, "finalized task"); n != test.finalized {
			t.Errorf("%s: %d processors finalized it, want %d:\n%s", test.name, n, test.finalized, out)
		}
	}
	// A step that fails for good fails the task, and the program says why.
	for _, args := range [][]string{{"/nowhere/at/all"}, {"-by-claim", "/nowhere/at/all"}} {
		out, err := runProgram(ctx, t, nodes, nil, args...)
		if err == nil || !strings.Contains(err.Error(), "is failed: ") || !strings.Contains(out, "failed at step fetch") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// The process that submitted the work dies in the middle of its first step. Another process does the rest after the
// lease of that step has ended.
func TestFanout_processDies(t *testing.T) {
	t.Parallel()
	ctx, nodes := startNodes(t)
	dir := t.TempDir()
	pipe, text := filepath.Join(dir, "pipe"), filepath.Join(dir, "text")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, []byte("one two\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := dieFetching(t, nodes, pipe, text)

	c, err := client.New(client.Config{Endpoints: nodes.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		own, err := client.New(client.Config{Endpoints: nodes.URLs()})
		if err == nil {
			err = run(working, own, []string{"-work"}, &watched{})
		}
		ended <- err
	}()
	task, err := c.Wait(ctx, id)
	if err != nil || task.Status != client.StatusCompleted || !strings.Contains(string(task.Result), `{"lines":2,"longest":"three","words":3}`) {
		t.Errorf("the task is %+v (%v)", task, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for step, err := range c.Tasks(ctx, client.Filter{ParentID: id}) {
		if want := map[string]int{"fetch": 2}[step.StepName]; err != nil || step.Attempts != max(want, 1) {
			t.Errorf("step %s has had %d attempts (%v)", step.StepName, step.Attempts, err)
		}
	}
}

// dieFetching runs the program as a process and kills it while it reads the pipe. Before that it puts the text in the
// pipe's place. It returns the task's id.
func dieFetching(t *testing.T, nodes *procs.Cluster, pipe, text string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], pipe)
	cmd.Env = append(os.Environ(), asProgram+"=1", "CLAIMQ_ENDPOINTS="+strings.Join(nodes.URLs(), ","))
	cmd.SysProcAttr = procs.ChildAttr()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		var writing *os.File
		if writing, err = os.OpenFile(pipe, os.O_WRONLY, 0); err == nil { // the program reads it
			defer writing.Close()
		}
	}
	if err == nil {
		err = os.Rename(text, pipe)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	id := regexp.MustCompile(`^submitted task (\d+) with 5 steps\n$`).FindStringSubmatch(said)
	if err != nil || id == nil {
		t.Fatalf("the program: %q, %v", said, err)
	}
	return id[1]
}
