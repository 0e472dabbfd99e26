package operations

import (
	"context"
	"fmt"
	"slices"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
)

// levelWhole is the feature level from which on a cluster has all that the load asks for.
const levelWhole = 4

// snapshotBytes lets each version restore what the other has written.
const snapshotBytes = "1048576" // the least

// Upgrade takes three nodes from the version Old to Binary and back, and there again
// for good, one node at a time under load. Its report is as Run's.
func Upgrade(ctx context.Context, cfg Config) (*Report, error) {
	return conduct(ctx, cfg, (*run).upgrade)
}

// upgrade is the run, from the first node to the check.
func (r *run) upgrade(ctx context.Context) error {
	var err error
	r.cluster, err = procs.Start(ctx, procs.Config{Binary: r.cfg.Old, Dir: r.cfg.Dir, Nodes: firstNodes, Flags: []string{"--snapshot-log-bytes", snapshotBytes}})
	if err != nil {
		return fmt.Errorf("form the cluster: %w", err)
	}
	r.startLoad(ctx)
	crew, err := startCrew(ctx, r.cluster.URLs())
	if err != nil {
		return err
	}
	err = r.goUp(ctx)
	crew.stop(r.report)
	if err != nil {
		return err
	}
	h, err := r.settleAll(ctx)
	if err != nil {
		return err
	}
	for i := range h.Ops { // the crew is not recorded
		h.Ops[i].Listed = slices.DeleteFunc(h.Ops[i].Listed, func(t history.Task) bool { return t.Type == crewType })
	}
	r.report.judge("all that was answered", h)
	return nil
}

// goUp goes up, back, up again, and makes that final.
func (r *run) goUp(ctx context.Context) error {
	for _, binary := range []string{r.cfg.Binary, r.cfg.Old, r.cfg.Binary} {
		if err := r.roll(ctx, binary); err != nil {
			return err
		}
	}
	return r.acts(ctx, []act{
		{"make it final", r.finalize},
		{"an old node on its folder", r.tryOldNode},
		{"an old node that joins", r.tryOldJoin},
	})
}

// roll restarts every node with the binary, the leader last.
func (r *run) roll(ctx context.Context, binary string) error {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	order := append(slices.DeleteFunc(slices.Clone(r.cluster.Nodes), func(n *procs.Node) bool { return n == leader }), leader)
	name := map[bool]string{true: "new", false: "old"}[binary == r.cfg.Binary]
	for i, n := range order {
		err := r.act(ctx, fmt.Sprintf("%s to the %s version, %d of %d", n.ID, name, i+1, len(order)), func(ctx context.Context) error {
			if err := n.Stop(ctx); err != nil {
				return err
			}
			n.SetBinary(binary)
			return n.StartReady(ctx)
		})
		if err != nil {
			return err
		}
		if i < len(order)-1 { // now there are both, and nobody may make it final
			_, _ = procs.Command(ctx, r.cfg.Binary, []*procs.Node{n}, "cluster", "upgrade", "--finalize") // a leader of the old version does not refuse it
		}
		if err := r.wantLevel(ctx, r.cfg.Level); err != nil {
			return err
		}
		if i == 0 {
			if err := r.tryClients(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantLevel asks every node for the cluster's feature level.
func (r *run) wantLevel(ctx context.Context, want uint32) error {
	for _, n := range r.cluster.Nodes {
		view, err := procs.View(ctx, n)
		if err != nil {
			return err
		}
		if view.FeatureLevel != want {
			return fmt.Errorf("%s says that the cluster is at feature level %d, want %d", n.ID, view.FeatureLevel, want)
		}
	}
	return nil
}

// finalize gives the command that an operator gives.
func (r *run) finalize(ctx context.Context) error {
	if _, err := r.claimq(ctx, "cluster", "upgrade", "--finalize"); err != nil {
		return err
	}
	return pause.Until(ctx, pollPause, func() error { return r.wantLevel(ctx, r.cfg.NewLevel) }) // a follower may be a moment behind
}
