package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/procs"
)

// processCluster is a cluster of real processes, with the commands against it.
type processCluster struct {
	*procs.Cluster
	t *testing.T
}

// newProcesses prepares nodes, of which the last ones join; none is started.
func newProcesses(t *testing.T, nodes, joining int) *processCluster {
	t.Helper()
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	c, err := procs.New(procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: nodes, Joining: joining, Env: []string{beClaimq + "=1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes {
				t.Logf("%s:\n%s", n.ID, n.LogTail(30))
			}
		}
		c.Close()
	})
	return &processCluster{Cluster: c, t: t}
}

// start starts nodes and waits until they are ready.
func (c *processCluster) start(nodes ...*procs.Node) {
	c.t.Helper()
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			c.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for _, n := range nodes {
		if err := n.WaitReady(ctx); err != nil {
			c.t.Fatal(err)
		}
	}
}

// run runs a client command against the nodes that run; output is what it
// printed, errors too.
func (c *processCluster) run(args ...string) (output string, code int) {
	c.t.Helper()
	for _, n := range c.Nodes {
		if n.Running() {
			args = append(args, "--endpoint", n.URL())
		}
	}
	return runClaimq(c.t, args...)
}

// do is run of what must succeed.
func (c *processCluster) do(args ...string) string {
	c.t.Helper()
	output, code := c.run(args...)
	if code != exitDone {
		c.t.Fatalf("claimq %s: exit code %d: %s", strings.Join(args, " "), code, output)
	}
	return output
}

func runClaimq(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := claimq(ctx, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return string(out), exit.ExitCode()
	case err != nil:
		t.Fatalf("claimq %s: %v", strings.Join(args, " "), err)
	}
	return string(out), exitDone
}

// nodes returns the members as the leader sees them, by name.
func (c *processCluster) nodes() map[string]wire.Node {
	c.t.Helper()
	out, code := c.run("cluster", "status", "--output", "json")
	var view wire.Cluster
	if err := json.Unmarshal([]byte(out), &view); code != exitDone || err != nil {
		return nil
	}
	nodes := map[string]wire.Node{}
	for _, n := range view.Nodes {
		nodes[n.NodeID] = n
	}
	return nodes
}

// await waits until the condition holds.
func (c *processCluster) await(what string, condition func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !condition(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited %s for %s: %v", patience, what, c.nodes())
		}
	}
}

// voters waits until these nodes, and no others, are voters and healthy.
func (c *processCluster) voters(ids ...string) {
	c.t.Helper()
	c.await(fmt.Sprintf("the voters %v", ids), func() bool {
		var got []string
		for id, n := range c.nodes() {
			if n.Suffrage == "voter" && n.Healthy {
				got = append(got, id)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, ids)
	})
}

func (c *processCluster) submit(count int) {
	c.t.Helper()
	for i := range count {
		c.do("submit", "mail", fmt.Sprint(i))
	}
}

func (c *processCluster) pending(want int) {
	c.t.Helper()
	out := c.do("stats", "--output", "json")
	var stats wire.Stats
	if err := json.Unmarshal([]byte(out), &stats); err != nil || stats.Counts["pending"] != int64(want) {
		c.t.Errorf("%d pending tasks, want %d (%v)", stats.Counts["pending"], want, err)
	}
}

// flagless takes a flag and its value out of a node's command line.
func flagless(n *procs.Node, flag string) {
	if i := slices.Index(n.Args, flag); i >= 0 {
		n.Args = slices.Delete(n.Args, i, i+2)
	}
}

// Two of three nodes are lost for good. The third one is recovered offline and
// serves with all its tasks; two new nodes join it.
func TestClusterRecover(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 5, 2)
	old, joining := c.Nodes[:3], c.Nodes[3:]
	c.start(old...)
	c.submit(7)
	claimed := c.do("claim", "--worker", "w1", "--type", "mail", "--lease", "1h", "--output", "json")
	var before wire.Answer
	if err := json.Unmarshal([]byte(claimed), &before); err != nil || before.Task == nil || before.Task.ClaimToken == nil {
		t.Fatalf("claim: %v: %s", err, claimed)
	}
	c.voters("n1", "n2", "n3")
	dir := old[2].DataDir

	if out, code := runClaimq(t, "cluster", "recover", "--data-dir", dir, "--"+recoverConsent); code != exitRefused || !strings.Contains(out, "stop it first") {
		t.Errorf("recover a folder in use: exit code %d: %s", code, out)
	}
	c.await("n3 to have the end of the log", func() bool {
		n := c.nodes()
		return n["n3"].AppliedIndex >= n["n1"].AppliedIndex && n["n3"].AppliedIndex > 0
	})
	for _, n := range old {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	out, code := runClaimq(t, "cluster", "recover", "--data-dir", dir)
	if code != exitUsage || !strings.Contains(out, "is lost") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("recover without consent: exit code %d: %s", code, out)
	}
	out, code = runClaimq(t, "cluster", "recover", "--data-dir", dir, "--"+recoverConsent)
	if code != exitDone || !strings.Contains(out, "n3 is the only member") {
		t.Fatalf("recover: exit code %d: %s", code, out)
	}
	if out, code := runClaimq(t, "cluster", "recover", "--data-dir", dir, "--"+recoverConsent); code != exitRefused || !strings.Contains(out, "only member") {
		t.Errorf("recover twice: exit code %d: %s", code, out)
	}
	c.start(old[2])
	c.voters("n3")
	c.pending(6)
	c.submit(1)
	// The claim that lived goes on, and no token comes twice.
	c.do("complete", fmt.Sprint(before.Task.ID), "--worker", "w1", "--token", fmt.Sprint(*before.Task.ClaimToken))
	var after wire.Answer
	if err := json.Unmarshal([]byte(c.do("claim", "--worker", "w1", "--type", "mail", "--output", "json")), &after); err != nil || *after.Task.ClaimToken <= *before.Task.ClaimToken+1<<39 {
		t.Errorf("after the recovery the token is %v, %v, before it was %d", after.Task, err, *before.Task.ClaimToken)
	}

	for _, n := range joining {
		flagless(n, "--join")
		n.Args = append(n.Args, "--join", old[2].PeerAddr)
	}
	c.start(joining...)
	c.voters("n3", "n4", "n5")
	c.pending(6)
	// One of the lost nodes comes back after all: the new cluster takes no notice.
	if err := old[0].Start(); err != nil {
		t.Fatal(err)
	}
	if err := old[1].Start(); err != nil {
		t.Fatal(err)
	}
	c.await("it to be refused", func() bool {
		return strings.Contains(old[2].LogTail(50)+old[0].LogTail(50), "belongs to cluster")
	})
	if err := errors.Join(old[0].Kill(), old[1].Kill()); err != nil {
		t.Fatal(err)
	}
	c.submit(1)
	c.voters("n3", "n4", "n5")
	if !strings.Contains(c.do("cluster", "hash"), "The states agree") {
		t.Error("the states differ")
	}
}

// What cannot be recovered is refused in words, and nothing is made of it.
func TestClusterRecover_refused(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 1, 0)
	c.start(c.Nodes...)
	c.submit(1)
	if err := c.Nodes[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, tc := range []struct {
		dir, want string
		code      int
	}{
		{"", "--data-dir is missing", exitUsage},
		{empty, "no node's data folder", exitRefused},
		{filepath.Join(empty, "not there"), "no node's data folder", exitRefused},
		{c.Nodes[0].DataDir, "just start it", exitRefused},
	} {
		out, code := runClaimq(t, "cluster", "recover", "--data-dir", tc.dir, "--"+recoverConsent)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("recover %q: exit code %d: %s", tc.dir, code, out)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("the empty folder has %v, %v", entries, err)
	}
}
