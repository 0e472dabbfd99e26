package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

// claimq runs a command as an operator of the cluster, and prints it. If the run is patient, it
// repeats a command that was not done.
func (r *run) claimq(ctx context.Context, args ...string) (printed string, err error) {
	err = r.patiently(ctx, func() error {
		printed, err = r.once(ctx, args...)
		return err
	})
	return printed, err
}

// patiently calls do until it succeeds, if the run is patient: on a busy machine there may be no
// leader, or a member that is not healthy, for a moment.
func (r *run) patiently(ctx context.Context, do func() error) error {
	if !r.cfg.Patient {
		return do()
	}
	return pause.Until(ctx, pollPause, do)
}

// once runs a command once, and prints it.
func (r *run) once(ctx context.Context, args ...string) (string, error) {
	printed, err := procs.Command(ctx, r.cfg.Binary, r.cluster.Nodes, args...)
	fmt.Fprintf(r.cfg.Out, "$ claimq %s\n%s", strings.Join(args, " "), printed)
	return printed, err
}

// letIn lets a new node join with a new token.
func (r *run) letIn(ctx context.Context, n *procs.Node) error {
	text, err := r.claimq(ctx, "cluster", "token", "create", "--output", "json")
	if err != nil {
		return err
	}
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return err
	}
	if err := n.SetJoinToken(made.Secret); err != nil {
		return err
	}
	return n.StartReady(ctx)
}

// grow lets two nodes join.
func (r *run) grow(ctx context.Context) error {
	for _, n := range r.cluster.Nodes[firstNodes:grownNodes] {
		if err := r.letIn(ctx, n); err != nil {
			return err
		}
	}
	if err := r.waitMembers(ctx, "n1", "n2", "n3", "n4", "n5"); err != nil {
		return err
	}
	_, err := r.claimq(ctx, "cluster", "status")
	return err
}

// transfer transfers the leadership to each node in turn.
func (r *run) transfer(ctx context.Context) error {
	for _, n := range r.cluster.Nodes[:grownNodes] {
		if err := r.lead(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// lead transfers the leadership to the node, unless it leads.
func (r *run) lead(ctx context.Context, n *procs.Node) error {
	return r.patiently(ctx, func() error {
		if leader, err := r.cluster.WaitLeader(ctx); err != nil || leader == n {
			return err
		}
		if _, err := r.once(ctx, "cluster", "transfer", n.ID); err != nil {
			return err
		}
		leader, err := r.cluster.WaitLeader(ctx)
		if err == nil && leader != n {
			err = fmt.Errorf("%s leads after a transfer to %s", leader.ID, n.ID)
		}
		return err
	})
}

// remove removes a member. It is gone as well if a command has removed it whose outcome was unknown.
func (r *run) remove(ctx context.Context, n *procs.Node) error {
	unknown := false
	return r.patiently(ctx, func() error {
		printed, err := r.once(ctx, "cluster", "remove", n.ID)
		if unknown && strings.Contains(printed, "No member is named") {
			return nil
		}
		unknown = unknown || err != nil
		return err
	})
}

// restartEach restarts every running node in an orderly way.
func (r *run) restartEach(ctx context.Context) error {
	return r.each(ctx, func(n *procs.Node) error { return stop(ctx, n) })
}

// killEach restarts every running node after a kill -9.
func (r *run) killEach(ctx context.Context) error { return r.each(ctx, (*procs.Node).Kill) }

// each ends each node and starts it again, one after the other, waiting until the previous
// one is healthy.
func (r *run) each(ctx context.Context, end func(*procs.Node) error) error {
	nodes := slices.DeleteFunc(slices.Clone(r.cluster.Nodes), func(n *procs.Node) bool { return !n.Running() })
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	for _, n := range nodes {
		r.rec.Event("%s is restarted", n.ID)
		if err := end(n); err != nil {
			return err
		}
		if err := n.StartReady(ctx); err != nil {
			return err
		}
		if err := r.waitMembers(ctx, ids...); err != nil {
			return err
		}
	}
	return nil
}

// stopTimeout bounds the stop of a node. After 10 s the node itself gives up waiting, and
// says so by its exit code.
const stopTimeout = 8 * time.Second

// stop asks a node to stop. One that takes too long is made to print its goroutines.
func stop(ctx context.Context, n *procs.Node) error {
	patient, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := n.Stop(patient); err != nil {
		_ = n.Signal(syscall.SIGQUIT) // it may have ended just now
		return errors.Join(err, n.WaitExit(ctx))
	}
	if code := n.ExitCode(); code != 0 {
		return fmt.Errorf("%s was asked to stop and ended with exit code %d:\n%s", n.ID, code, n.LogTail(20))
	}
	return nil
}

// shrink removes the leader, and another node.
func (r *run) shrink(ctx context.Context) error {
	if err := r.lead(ctx, r.node(grownNodes)); err != nil {
		return err
	}
	for _, n := range []*procs.Node{r.node(grownNodes), r.node(grownNodes - 1)} {
		if err := r.remove(ctx, n); err != nil {
			return err
		}
		if err := stop(ctx, n); err != nil {
			return fmt.Errorf("stop a removed node: %w", err)
		}
	}
	return r.waitMembers(ctx, "n1", "n2", "n3")
}

// replace makes a node lose its disk, and replaces it by another one.
func (r *run) replace(ctx context.Context) error {
	dead, fresh := r.node(2), r.node(allNodes)
	if err := dead.Kill(); err != nil {
		return err
	}
	if err := dead.Wipe(); err != nil {
		return err
	}
	if err := r.remove(ctx, dead); err != nil {
		return err
	}
	if err := r.letIn(ctx, fresh); err != nil {
		return err
	}
	return r.waitMembers(ctx, "n1", "n3", "n6")
}

// waitMembers waits until the cluster consists of these voters, all of them healthy.
func (r *run) waitMembers(ctx context.Context, ids ...string) error {
	return pause.Until(ctx, pollPause, func() error {
		leader, err := r.cluster.Leader(ctx)
		if err != nil {
			return err
		}
		view, err := procs.View(ctx, leader)
		if err != nil {
			return err
		}
		var are []string
		for i := range view.Nodes {
			n := &view.Nodes[i]
			if n.Suffrage != "voter" || !n.Healthy {
				return fmt.Errorf("%s, %s: %s %s", n.NodeID, n.Suffrage, n.State, n.Problem)
			}
			are = append(are, n.NodeID)
		}
		if slices.Sort(are); !slices.Equal(are, ids) {
			return fmt.Errorf("the healthy voters are %v, not %v", are, ids)
		}
		return nil
	})
}
