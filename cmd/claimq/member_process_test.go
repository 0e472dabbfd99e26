package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/procs"
)

// recoverFlag is the flag that allows cluster recover to change anything.
const recoverFlag = "--yes-i-know-this-may-lose-data"

// processCluster is a cluster of real processes, with the commands against it.
type processCluster struct {
	*procs.Cluster
	t         *testing.T
	submitted int
}

// newProcesses prepares nodes, the last of which join later. It starts none.
func newProcesses(t *testing.T, nodes, joining int) *processCluster {
	t.Helper()
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	c, err := procs.New(procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: nodes, Joining: joining, Env: asClaimq})
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
	ctx, cancel := context.WithTimeout(c.t.Context(), claimqtest.Patience)
	defer cancel()
	for _, n := range nodes {
		if err := n.WaitReady(ctx); err != nil {
			c.t.Fatal(err)
		}
	}
}

// ends stops nodes, which must exit with code 0.
func (c *processCluster) ends(nodes ...*procs.Node) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), claimqtest.Patience)
	defer cancel()
	for _, n := range nodes {
		if err := n.Signal(syscall.SIGTERM); err != nil {
			c.t.Error(err)
		}
	}
	for _, n := range nodes {
		if err := n.WaitExit(ctx); err != nil || n.ExitCode() != term.ExitDone {
			c.t.Errorf("%s ended with exit code %d (%v)", n.ID, n.ExitCode(), err)
		}
	}
}

// run runs a client command against the running nodes. output has its output and its errors.
func (c *processCluster) run(args ...string) (output string, code int) {
	c.t.Helper()
	for _, n := range c.Nodes {
		if n.Running() {
			args = append(args, "--endpoint", n.URL())
		}
	}
	return runClaimq(c.t, args...)
}

// do runs a command until it has succeeded: on a busy machine there may be no leader for a moment, or a member that is
// not healthy. A refusal is final, except of changes of the cluster.
func (c *processCluster) do(args ...string) (output string) {
	c.t.Helper()
	c.await("claimq "+strings.Join(args, " "), func() bool {
		var code int
		output, code = c.run(args...)
		if code != term.ExitDone && code != term.ExitUnknown && args[0] != "cluster" {
			c.t.Fatalf("claimq %s: exit code %d: %s", strings.Join(args, " "), code, output)
		}
		return code == term.ExitDone
	}, &output)
	return output
}

// remove removes a member. It is gone as well if an earlier try, whose outcome is unknown, has removed it.
func (c *processCluster) remove(id string) {
	c.t.Helper()
	unknown, output := false, ""
	c.await(id+" to be removed", func() bool {
		var code int
		output, code = c.run("cluster", "remove", id)
		gone := unknown && code == term.ExitRefused && strings.Contains(output, "No member is named")
		unknown = unknown || code == term.ExitUnknown
		return code == term.ExitDone || gone
	}, &output)
}

// letIn makes a join token for the node.
func (c *processCluster) letIn(n *procs.Node) {
	c.t.Helper()
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(c.do("cluster", "token", "create", "--output", "json")), &made); err != nil {
		c.t.Fatal(err)
	}
	if err := n.SetJoinToken(made.Secret); err != nil {
		c.t.Fatal(err)
	}
}

// runClaimq runs a command in this process, which costs less than a process each. It returns what it printed.
func runClaimq(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), claimqtest.Patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code = run(ctx, &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Environ: os.Environ(), Version: version}, args)
	return stdout.String() + stderr.String(), code
}

// nodes returns the members by name, as the leader sees them.
func (c *processCluster) nodes() map[string]wire.Node {
	c.t.Helper()
	out, code := c.run("cluster", "status", "--output", "json")
	var view wire.Cluster
	if err := json.Unmarshal([]byte(out), &view); code != term.ExitDone || err != nil {
		return nil
	}
	nodes := map[string]wire.Node{}
	for _, n := range view.Nodes {
		nodes[n.NodeID] = n
	}
	return nodes
}

// view is nodes once there is a leader.
func (c *processCluster) view() (nodes map[string]wire.Node) {
	c.t.Helper()
	c.await("a leader's view", func() bool { nodes = c.nodes(); return len(nodes) > 0 })
	return nodes
}

// await waits until the condition is true. If it does not come true, the last outputs are reported.
func (c *processCluster) await(what string, condition func() bool, outputs ...*string) {
	c.t.Helper()
	for deadline := time.Now().Add(claimqtest.Patience); !condition(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, last := range outputs {
				c.t.Log(*last)
			}
			c.t.Fatalf("waited %s for %s: %v", claimqtest.Patience, what, c.nodes())
		}
	}
}

// voters waits until exactly these nodes are healthy voters.
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
	for range count {
		c.submitted++
		c.do("submit", "mail", "1", "--key", fmt.Sprint(c.submitted))
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

// flagless removes a flag and its value from a node's command line.
func flagless(n *procs.Node, flag string) {
	if i := slices.Index(n.Args, flag); i >= 0 {
		n.Args = slices.Delete(n.Args, i, i+2)
	}
}

// Two of three nodes are lost. The third one is recovered offline and serves all its tasks, and two new nodes join
// it.
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

	if out, code := runClaimq(t, "cluster", "recover", "--data-dir", dir, recoverFlag); code != term.ExitRefused || !strings.Contains(out, "stop it first") {
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
	if code != term.ExitUsage || !strings.Contains(out, "are lost") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("recover without consent: exit code %d: %s", code, out)
	}
	out, code = runClaimq(t, "cluster", "recover", "--data-dir", dir, recoverFlag)
	if code != term.ExitDone || !strings.Contains(out, "n3 is the only member") {
		t.Fatalf("recover: exit code %d: %s", code, out)
	}
	if out, code := runClaimq(t, "cluster", "recover", "--data-dir", dir, recoverFlag); code != term.ExitRefused || !strings.Contains(out, "only member") {
		t.Errorf("recover twice: exit code %d: %s", code, out)
	}
	c.start(old[2])
	c.voters("n3")
	c.pending(6)
	c.submit(1)
	// The live claim goes on, and no token is used twice.
	c.do("complete", fmt.Sprint(before.Task.ID), "--worker", "w1", "--token", fmt.Sprint(*before.Task.ClaimToken))
	var after wire.Answer
	if err := json.Unmarshal([]byte(c.do("claim", "--worker", "w1", "--type", "mail", "--output", "json")), &after); err != nil || *after.Task.ClaimToken <= *before.Task.ClaimToken+1<<39 {
		t.Errorf("after the recovery the token is %v, %v, before it was %d", after.Task, err, *before.Task.ClaimToken)
	}

	for _, n := range joining {
		flagless(n, "--join")
		n.JoinBy([]string{old[2].PeerAddr})
		c.letIn(n)
	}
	c.start(joining...)
	c.voters("n3", "n4", "n5")
	c.pending(6)
	// When one of the lost nodes comes back, the new cluster ignores it.
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

// If recovery is impossible, it is refused with a reason, and nothing is changed.
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
		{"", "--data-dir is empty", term.ExitUsage},
		{empty, "no node's data folder", term.ExitRefused},
		{filepath.Join(empty, "not there"), "no node's data folder", term.ExitRefused},
		{c.Nodes[0].DataDir, "just start it", term.ExitRefused},
	} {
		out, code := runClaimq(t, "cluster", "recover", "--data-dir", tc.dir, recoverFlag)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("recover %q: exit code %d: %s", tc.dir, code, out)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("the empty folder has %v, %v", entries, err)
	}
}

// refused runs a command until it is refused with these words: before that there may be no leader, or a member that is
// not healthy.
func (c *processCluster) refused(words string, args ...string) {
	c.t.Helper()
	var output string
	c.await(fmt.Sprintf("claimq %s to be refused with %q", strings.Join(args, " "), words), func() bool {
		var code int
		if output, code = c.run(args...); code == term.ExitDone {
			c.t.Fatalf("claimq %s is done, want a refusal that says %q: %s", strings.Join(args, " "), words, output)
		}
		return code == term.ExitRefused && strings.Contains(output, words)
	}, &output)
}

// logs waits until the node has logged the text.
func (c *processCluster) logs(n *procs.Node, text string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%s to log %q", n.ID, text), func() bool { return strings.Contains(n.LogTail(200), text) })
}

// leader waits until a node leads, and returns it.
func (c *processCluster) leader() *procs.Node {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), claimqtest.Patience)
	defer cancel()
	n, err := c.WaitLeader(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// readiness returns the status of the node's /readyz.
func readiness(t *testing.T, n *procs.Node) int {
	t.Helper()
	resp, err := http.Get(n.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// Operators' calls let a cluster grow, transfer its leadership and shrink again. The removed nodes include leaders.
func TestCluster_growsAndShrinks(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 5, 2)
	c.start(c.Nodes[:3]...)
	c.submit(3)
	n4, n5 := c.Nodes[3], c.Nodes[4]
	c.refused("No node could be asked", "cluster", "join", "n4", n4.PeerAddr)
	for _, n := range []*procs.Node{n4, n5} {
		flagless(n, "--join")
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		c.logs(n, "waits to be joined")
	}
	c.joinByCall(n4, n5)
	c.voters("n1", "n2", "n3", "n4", "n5")
	c.pending(3)

	c.await("n4 to lead", func() bool {
		c.do("cluster", "transfer", "n4")
		return c.nodes()["n4"].State == "leader"
	})
	c.submit(1)
	c.do("cluster", "demote", "n4")
	c.await("n4 to have no vote", func() bool { return c.nodes()["n4"].Suffrage == "nonvoter" })
	c.refused("is not a voter", "cluster", "transfer", "n4")
	c.refused("No member is named", "cluster", "transfer", "n9")
	if err := n4.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.start(n4) // a restart does not make it a voter
	c.do("cluster", "transfer")
	if got := c.view()["n4"].Suffrage; got != "nonvoter" {
		t.Errorf("after a restart n4 is a %s", got)
	}

	for range 2 {
		leader := c.leader()
		c.remove(leader.ID)
		c.logs(leader, "was removed from the cluster")
		if got := readiness(t, leader); got != http.StatusServiceUnavailable {
			t.Errorf("a removed node's /readyz is %d, want 503", got)
		}
		c.refused("No member is named", "cluster", "remove", leader.ID)
		c.submit(1) // this also goes to the removed node
		if err := leader.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c.pending(6)
	c.remove("n4")
	c.logs(n4, "was removed from the cluster")
	last := c.leader().ID
	for id := range c.view() { // either of the two left may lead by now
		if id != last {
			c.remove(id)
		}
	}
	c.refused("is the last voter", "cluster", "remove", last)
	c.refused("is the last voter", "cluster", "demote", last)
	c.refused("No other voter", "cluster", "transfer")
	c.pending(6)
	events := c.do("events", "--output", "json")
	for _, act := range []string{"member_added", "member_removed", "member_promoted", "member_demoted", "leadership_transferred"} {
		if !strings.Contains(events, act) {
			t.Errorf("the trail tells of no %s", act)
		}
	}
}

// joinByCall makes two waiting nodes members. The first one stays without a vote until it is promoted.
func (c *processCluster) joinByCall(kept, voter *procs.Node) {
	c.t.Helper()
	c.refused(`calls itself "n4"`, "cluster", "join", "n9", kept.PeerAddr)
	c.refused(`calls itself "n1"`, "cluster", "join", "n4", c.Nodes[0].PeerAddr)
	c.do("cluster", "join", kept.ID, kept.PeerAddr, "--nonvoter")
	c.do("cluster", "join", kept.ID, kept.PeerAddr, "--nonvoter")
	c.do("cluster", "join", voter.ID, voter.PeerAddr)
	ctx, cancel := context.WithTimeout(c.t.Context(), claimqtest.Patience)
	defer cancel()
	if err := errors.Join(kept.WaitReady(ctx), voter.WaitReady(ctx)); err != nil {
		c.t.Fatal(err)
	}
	c.await("n5 to vote", func() bool { return c.nodes()[voter.ID].Suffrage == "voter" })
	if got := c.view()[kept.ID].Suffrage; got != "nonvoter" {
		c.t.Errorf("a node that joined without a vote is a %s", got)
	}
	c.refused("a voter", "cluster", "join", voter.ID, voter.PeerAddr, "--nonvoter")
	c.do("cluster", "promote", kept.ID)
}

// A node that comes back with an empty folder cannot use its old name, in whichever way it tries. The refusal says
// what to do instead, and that works.
func TestCluster_wipedNode(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 3, 0)
	c.start(c.Nodes...)
	c.submit(2)
	c.voters("n1", "n2", "n3")
	dead := c.Nodes[2]
	if c.leader() == dead {
		c.do("cluster", "transfer", "n1")
	}
	if err := dead.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dead.DataDir); err != nil {
		t.Fatal(err)
	}
	initial := slices.Clone(dead.Args)
	flagless(dead, "--initial-cluster")
	bare := slices.Clone(dead.Args)
	for name, args := range map[string][]string{
		"--initial-cluster": initial,
		"--join":            append(slices.Clone(bare), "--join", c.Nodes[0].PeerAddr),
		"--bootstrap":       append(slices.Clone(bare), "--bootstrap"),
	} {
		dead.Args = args
		if err := dead.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), claimqtest.Patience)
		if err := dead.WaitExit(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if log := dead.LogTail(3); dead.ExitCode() == term.ExitDone || !strings.Contains(log, "claimq cluster remove n3") {
			t.Errorf("%s: exit code %d: %s", name, dead.ExitCode(), log)
		}
	}
	// An operator's call does not admit it either.
	dead.Args = bare
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	c.logs(dead, "waits to be joined")
	c.refused(`"n3" is taken by a member with another identity`, "cluster", "join", "n3", dead.PeerAddr)
	c.remove("n3")
	c.do("cluster", "join", "n3", dead.PeerAddr)
	c.voters("n1", "n2", "n3")
	c.pending(2)
}

// A node that starts at new addresses is found there.
func TestCluster_movedNode(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 4, 1)
	c.start(c.Nodes[:3]...)
	c.voters("n1", "n2", "n3")
	moved, place := c.Nodes[1], c.Nodes[3] // its node is never started
	if err := moved.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := moved.PeerAddr
	moved.PeerAddr, moved.HTTPAddr = place.PeerAddr, place.HTTPAddr
	moved.SetFlag("--peer-addr", place.PeerAddr)
	moved.SetFlag("--http-addr", place.HTTPAddr)
	c.start(moved)
	c.await("its new addresses to be known", func() bool {
		n := c.nodes()["n2"]
		return n.Healthy && n.PeerAddr == place.PeerAddr && n.HTTPAddr == place.URL()
	})
	c.submit(1)
	// The others have its new address on disk, and the cluster needs it there.
	for _, n := range c.Nodes[:3] {
		if n != moved {
			if err := n.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.start(c.Nodes[0])
	c.submit(1)
	c.pending(2)
	for _, n := range c.view() {
		if n.PeerAddr == before {
			t.Errorf("%s is still at %s", n.NodeID, before)
		}
	}
}
