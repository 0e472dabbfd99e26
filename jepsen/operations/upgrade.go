package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/releases"
)

// featureLevel is the level that the binary under test knows. With another one in the source, BuildNext fails.
const featureLevel = 1

// snapshotBytes makes nodes take snapshots often, so that each version restores those of the
// other.
const snapshotBytes = "1048576" // the least

// Upgrade upgrades three nodes from the first release to a version of today that knows one feature level more, back,
// and up again for good, one node at a time under load. In a checkout that has no release, as a shallow clone, they begin
// with Binary. Its report is like Run's.
func Upgrade(ctx context.Context, cfg Config) (*Report, error) {
	return conduct(ctx, cfg, (*run).upgrade)
}

// upgrade is the run, from the first node to the check.
func (r *run) upgrade(ctx context.Context) error {
	root, err := procs.Root(ctx)
	if err != nil {
		return err
	}
	released, err := releases.InCheckout(ctx, root, releases.All)
	if err != nil {
		return err
	}
	r.old = r.cfg.Binary
	if len(released) > 0 {
		if r.old, err = released[0].Build(ctx, r.cfg.Dir); err != nil {
			return err
		}
	}
	if r.cfg.Binary, err = procs.BuildNext(ctx, r.cfg.Dir, featureLevel); err != nil {
		return err
	}
	r.cluster, err = procs.Start(ctx, procs.Config{
		Binary: r.old, Dir: r.cfg.Dir, Nodes: firstNodes + 1, Joining: 1, Flags: []string{"--snapshot-log-bytes", snapshotBytes},
	})
	if err != nil {
		return fmt.Errorf("form the cluster: %w", err)
	}
	r.startLoad(ctx)
	for _, binary := range []string{r.cfg.Binary, r.old, r.cfg.Binary} {
		if err := r.roll(ctx, binary); err != nil {
			return err
		}
	}
	if err := r.acts(ctx, []act{
		{"a command that the level does not have", r.tryAbove},
		{"make it final", r.finalize},
		{"the same command", r.setDefaults},
		{"an old node on its folder", r.tryOldNode},
		{"an old node that joins", r.tryOldJoin},
	}); err != nil {
		return err
	}
	h, err := r.settleAll(ctx)
	if err == nil {
		r.report.judge("all that was answered", h)
	}
	return err
}

// roll restarts every node with the binary, the leader last.
func (r *run) roll(ctx context.Context, binary string) error {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	order := append(slices.DeleteFunc(slices.Clone(r.cluster.Nodes[:firstNodes]), func(n *procs.Node) bool { return n == leader }), leader)
	name := map[bool]string{true: "new", false: "old"}[binary == r.cfg.Binary]
	for i, n := range order {
		err := r.act(ctx, fmt.Sprintf("%s to the %s version, %d of %d", n.ID, name, i+1, len(order)), func(ctx context.Context) error {
			if err := n.Stop(ctx); err != nil {
				return err
			}
			n.SetBinary(binary)
			if err := n.StartReady(ctx); err != nil {
				return err
			}
			if i < len(order)-1 { // now there are both versions, and it must not become final
				_, _ = procs.Command(ctx, r.cfg.Binary, []*procs.Node{n}, "cluster", "upgrade", "--finalize") // a leader of the old version does not refuse it
			}
			return r.waitLevel(ctx, featureLevel)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waitLevel waits until every node has applied the entry that raises the cluster to the feature
// level, and none that raises it further.
func (r *run) waitLevel(ctx context.Context, want uint32) error {
	return pause.Until(ctx, pollPause, func() error {
		for _, n := range r.cluster.Nodes[:firstNodes] {
			level, err := n.Metric(ctx, "claimq_feature_level")
			if err == nil && uint32(level) != want {
				err = fmt.Errorf("%s is at feature level %v, not %d", n.ID, level, want)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// finalize runs the operator's command.
func (r *run) finalize(ctx context.Context) error {
	if _, err := r.claimq(ctx, "cluster", "upgrade", "--finalize"); err != nil {
		return err
	}
	return r.waitLevel(ctx, featureLevel+1)
}

// setDefaults runs a command that the newer version's level brought.
func (r *run) setDefaults(ctx context.Context) error {
	_, err := r.once(ctx, "defaults", "set", "--max-attempts", "10")
	return err
}

// tryAbove does setDefaults before the level is raised: it must be refused for that.
func (r *run) tryAbove(ctx context.Context) error {
	if err := r.setDefaults(ctx); err == nil || !strings.Contains(err.Error(), "feature level is too low") {
		return fmt.Errorf("it is not refused for the level: %w", err)
	}
	return nil
}

// tryOldNode starts a node's old version on the folder of a cluster that has been upgraded for
// good: it must end by itself and say why. Then the new version continues with the folder.
func (r *run) tryOldNode(ctx context.Context) error {
	n := r.node(1)
	if err := stop(ctx, n); err != nil {
		return err
	}
	n.SetBinary(r.old)
	if err := n.Start(); err != nil {
		return err
	}
	if err := n.WaitExit(ctx); err != nil {
		return fmt.Errorf("it goes on: %w", err)
	}
	if words := n.LogTail(5); n.ExitCode() == 0 || !strings.Contains(words, "use the version that wrote it") {
		return fmt.Errorf("%s ended with exit code %d and says %q", n.ID, n.ExitCode(), words)
	}
	n.SetBinary(r.cfg.Binary)
	return n.StartReady(ctx)
}

// tryOldJoin lets a new node of the old version join: it must be refused with an explanation.
func (r *run) tryOldJoin(ctx context.Context) error {
	n := r.node(firstNodes + 1) // still of the old version
	if err := n.SetJoinToken("refused before anybody looks at it"); err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	defer func() { _ = n.Kill() }() // it may have ended by itself
	return pause.Until(ctx, pollPause, func() error {
		if said := n.Output(); !strings.Contains(said, "run a newer version") {
			return fmt.Errorf("%s is not refused, running %v, and says %q", n.ID, n.Running(), said)
		}
		return nil
	})
}
