package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/procs"
)

// tryClients uses the command line of each version against each node, while the
// nodes are of both versions.
func (u *upgrading) tryClients(ctx context.Context) error {
	for _, binary := range []string{u.cfg.Old, u.cfg.New} {
		for _, n := range u.cluster.Nodes {
			if err := u.tryClient(ctx, binary, n); err != nil {
				return fmt.Errorf("%s against %s: %w", filepath.Base(binary), n.ID, err)
			}
		}
	}
	return nil
}

// tryClient takes a task through its life. Its type is paused, so that nobody
// else claims it.
func (u *upgrading) tryClient(ctx context.Context, binary string, n *procs.Node) error {
	out, err := u.command(ctx, binary, n, "submit", crewType, `{"by":"hand"}`, "--output", "json")
	if err != nil {
		return err
	}
	var answer wire.Answer
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Task == nil {
		return fmt.Errorf("submit prints %q: %w", out, err)
	}
	id := strconv.FormatUint(answer.Task.ID, 10)
	for _, args := range [][]string{
		{"get", id}, {"list", "--type", crewType, "--limit", "5"}, {"stats"}, {"cluster", "status"}, {"cancel", id}, {"delete", id},
	} {
		if _, err := u.command(ctx, binary, n, args...); err != nil {
			return err
		}
	}
	return nil
}

// tryOldNode starts a node's old version on the folder of a cluster that has
// been upgraded for good: it must end by itself, say why, and change nothing.
func (u *upgrading) tryOldNode(ctx context.Context) error {
	leader, err := u.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	n := u.cluster.Nodes[0]
	if n == leader {
		n = u.cluster.Nodes[1]
	}
	if err := waitOwnLevel(ctx, n, fsm.FeatureLevel); err != nil {
		return err
	}
	if err := n.Stop(ctx); err != nil {
		return err
	}
	before, err := hashFiles(n.DataDir)
	if err != nil {
		return err
	}
	said := len(n.Output())
	n.SetBinary(u.cfg.Old)
	if err := n.Start(); err != nil {
		return err
	}
	if err := n.WaitExit(ctx); err != nil {
		return fmt.Errorf("it goes on: %w", err)
	}
	words := n.Output()[said:]
	fmt.Fprintf(u.cfg.Out, "      the old version says: %s\n", strings.TrimSpace(words))
	if n.ExitCode() == 0 || !strings.Contains(words, "use the version that wrote it") {
		return fmt.Errorf("it ends with exit code %d and says %q", n.ExitCode(), words)
	}
	after, err := hashFiles(n.DataDir)
	if err != nil {
		return err
	}
	if !maps.Equal(before, after) {
		return fmt.Errorf("it changed its folder: %v before, %v after", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	n.SetBinary(u.cfg.New)
	if err := n.Start(); err != nil {
		return err
	}
	return n.WaitReady(ctx)
}

// waitOwnLevel waits until the node itself has applied the entry that raised the
// level: /api/cluster tells what the leader has.
func waitOwnLevel(ctx context.Context, n *procs.Node, level uint32) error {
	for {
		at, err := n.Metric(ctx, "claimq_feature_level")
		if err != nil || uint32(at) == level {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not reach feature level %d: %w", n.ID, level, context.Cause(ctx))
		case <-time.After(idlePoll):
		}
	}
}

// hashFiles returns the hashes of the files in the folder, but of the lock's,
// which names the process that holds it.
func hashFiles(dir string) (map[string]string, error) {
	hashes := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		hashes[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return nil
	})
	return hashes, err
}

// tryOldJoin lets a new node of the old version join: it must be refused, with
// words.
func (u *upgrading) tryOldJoin(ctx context.Context) error {
	peers := make([]string, len(u.cluster.Nodes))
	for i, n := range u.cluster.Nodes {
		peers[i] = n.PeerAddr
	}
	dir := filepath.Join(u.cfg.Dir, "joins")
	log, err := os.Create(dir + ".log")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // it is read below
	cmd := exec.CommandContext(ctx, u.cfg.Old, "server", "--node-id", "n9", "--data-dir", dir, "--http-addr", "127.0.0.1:0", "--peer-addr", "127.0.0.1:0",
		"--peer-advertise", "127.0.0.1:1", // nobody gets to call it
		"--join", strings.Join(peers, ","), "--join-key-file", filepath.Join(u.cfg.Dir, "join.key"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what it says counts
		close(exited)
	}()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-exited
	}()
	for {
		b, err := os.ReadFile(log.Name())
		if err != nil {
			return err
		}
		if said := string(b); strings.Contains(said, "run a newer version") {
			fmt.Fprintf(u.cfg.Out, "      a node of the old version that wants to join says: %s\n", strings.TrimSpace(said))
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("it ends and says %q", b)
		case <-ctx.Done():
			return fmt.Errorf("it is not refused, and says %q", b)
		case <-time.After(idlePoll):
		}
	}
}
