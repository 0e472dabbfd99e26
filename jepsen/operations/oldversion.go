package operations

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/procs"
)

// tryClients uses the command line of each version against each node, while the
// nodes are of both versions.
func (r *run) tryClients(ctx context.Context) error {
	for _, binary := range []string{r.cfg.Old, r.cfg.Binary} {
		for _, n := range r.cluster.Nodes {
			if err := r.tryClient(ctx, binary, n); err != nil {
				return fmt.Errorf("%s against %s: %w", filepath.Base(binary), n.ID, err)
			}
		}
	}
	return nil
}

// tryClient takes a task through its life. Its type is paused, so that nobody
// else claims it.
func (r *run) tryClient(ctx context.Context, binary string, n *procs.Node) error {
	nodes := []*procs.Node{n}
	out, err := procs.Command(ctx, binary, nodes, "submit", crewType, `{"by":"hand"}`, "--output", "json")
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
		if _, err := procs.Command(ctx, binary, nodes, args...); err != nil {
			return err
		}
	}
	return nil
}

// tryOldNode starts a node's old version on the folder of a cluster that has
// been upgraded for good: it must end by itself, say why, and change nothing.
func (r *run) tryOldNode(ctx context.Context) error {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	n := r.cluster.Nodes[0]
	if n == leader {
		n = r.cluster.Nodes[1]
	}
	// The node itself must have applied what raised the level: /api/cluster tells what the
	// leader has.
	err = pause.Until(ctx, pollPause, func() error {
		at, err := n.Metric(ctx, "claimq_feature_level")
		if err == nil && uint32(at) != r.cfg.NewLevel {
			err = fmt.Errorf("%s is at feature level %v, not %d", n.ID, at, r.cfg.NewLevel)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := n.Stop(ctx); err != nil {
		return err
	}
	before, err := hashFiles(n.DataDir)
	if err != nil {
		return err
	}
	n.SetBinary(r.cfg.Old)
	words, err := r.refuse(ctx, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.cfg.Out, "      the old version says: %s\n", strings.TrimSpace(words))
	if !strings.Contains(words, "use the version that wrote it") {
		return fmt.Errorf("it says %q", words)
	}
	after, err := hashFiles(n.DataDir)
	if err != nil {
		return err
	}
	if !maps.Equal(before, after) {
		return fmt.Errorf("it changed its folder: %v before, %v after", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	n.SetBinary(r.cfg.Binary)
	return n.StartReady(ctx)
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
func (r *run) tryOldJoin(ctx context.Context) error {
	peers := make([]string, len(r.cluster.Nodes))
	for i, n := range r.cluster.Nodes {
		peers[i] = n.PeerAddr
	}
	joins := &procs.Node{ID: "n9", LogPath: filepath.Join(r.cfg.Dir, "joins.log"), Args: []string{
		"server", "--node-id", "n9", "--data-dir", filepath.Join(r.cfg.Dir, "joins"), "--http-addr", "127.0.0.1:0", "--peer-addr", "127.0.0.1:0",
		"--peer-advertise", "127.0.0.1:1", // nobody gets to call it
		"--join", strings.Join(peers, ","), "--join-key-file", filepath.Join(r.cfg.Dir, "join.key"),
	}}
	joins.SetBinary(r.cfg.Old)
	if err := joins.Start(); err != nil {
		return err
	}
	defer func() { _ = joins.Kill() }() // it may have ended by itself
	for !strings.Contains(joins.Output(), "run a newer version") {
		if !joins.Running() || !pause.For(ctx, pollPause) {
			return fmt.Errorf("it is not refused, running %v, and says %q", joins.Running(), joins.Output())
		}
	}
	fmt.Fprintf(r.cfg.Out, "      a node of the old version that wants to join says: %s\n", strings.TrimSpace(joins.Output()))
	return nil
}
