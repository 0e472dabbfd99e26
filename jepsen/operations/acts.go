package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/procs"
)

// membersOf returns the names of the healthy voters, sorted; with others what is
// wrong with them.
func membersOf(view *wire.Cluster) string {
	var ids []string
	for i := range view.Nodes {
		n := &view.Nodes[i]
		if n.Suffrage != "voter" || !n.Healthy {
			return fmt.Sprintf("%s, %s: %s %s", view.Nodes[i].NodeID, n.Suffrage, n.State, n.Problem)
		}
		ids = append(ids, n.NodeID)
	}
	slices.Sort(ids)
	return fmt.Sprint(ids)
}

// letIn makes a join token for the node.
func (r *run) letIn(ctx context.Context, n *procs.Node) error {
	text, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "token", "create", "--output", "json")
	if err != nil {
		return err
	}
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return err
	}
	return n.SetJoinToken(made.Secret)
}

// grow has two nodes join.
func (r *run) grow(ctx context.Context) error {
	for _, n := range r.cluster.Nodes[firstNodes:grownNodes] {
		if err := r.letIn(ctx, n); err != nil {
			return err
		}
		if err := n.Start(); err != nil {
			return err
		}
		if err := n.WaitReady(ctx); err != nil {
			return err
		}
	}
	if err := r.waitMembers(ctx, "n1", "n2", "n3", "n4", "n5"); err != nil {
		return err
	}
	_, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "status")
	return err
}

// transfer hands the leadership to each node in turn.
func (r *run) transfer(ctx context.Context) error {
	for _, n := range r.cluster.Nodes[:grownNodes] {
		leader, err := r.cluster.WaitLeader(ctx)
		if err != nil {
			return err
		}
		if leader == n {
			continue
		}
		if _, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "transfer", n.ID); err != nil {
			return err
		}
		if now, err := r.cluster.WaitLeader(ctx); err != nil || now != n {
			return fmt.Errorf("%s leads after a transfer to %s: %w", now.ID, n.ID, err)
		}
	}
	return nil
}

// restartEach restarts every node that runs, the patient way.
func (r *run) restartEach(ctx context.Context) error {
	return r.each(ctx, func(n *procs.Node) error {
		return stop(ctx, n)
	})
}

// stopTimeout is how long a node may take to stop when it is asked to. It waits 10 s
// itself for what does not end, and then says so by its exit code.
const stopTimeout = 8 * time.Second

// stop asks a node to stop. One that takes too long is made to print what its
// goroutines do.
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

// killEach restarts every node that runs, after a kill -9.
func (r *run) killEach(ctx context.Context) error {
	return r.each(ctx, (*procs.Node).Kill)
}

// each ends each node and starts it again, one after the other, each once the one
// before is healthy.
func (r *run) each(ctx context.Context, end func(*procs.Node) error) error {
	var ids []string
	for _, n := range r.cluster.Nodes {
		if n.Running() {
			ids = append(ids, n.ID)
		}
	}
	for _, n := range r.cluster.Nodes {
		if !slices.Contains(ids, n.ID) {
			continue
		}
		r.rec.Event("%s is restarted", n.ID)
		if err := end(n); err != nil {
			return err
		}
		if err := n.Start(); err != nil {
			return err
		}
		if err := n.WaitReady(ctx); err != nil {
			return err
		}
		if err := r.waitMembers(ctx, ids...); err != nil {
			return err
		}
	}
	return nil
}

// shrink removes the leader, and another node.
func (r *run) shrink(ctx context.Context) error {
	for _, n := range []*procs.Node{r.node(grownNodes), r.node(grownNodes - 1)} {
		if n == r.node(grownNodes) { // it shall lead
			if leader, err := r.cluster.WaitLeader(ctx); err != nil || leader != n {
				if _, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "transfer", n.ID); err != nil {
					return err
				}
			}
		}
		if _, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "remove", n.ID); err != nil {
			return err
		}
		if err := stop(ctx, n); err != nil {
			return fmt.Errorf("stop a removed node: %w", err)
		}
	}
	return r.waitMembers(ctx, "n1", "n2", "n3")
}

// replace has a node lose its disk, refuses it under its old identity, and puts
// another one in its place.
func (r *run) replace(ctx context.Context) error {
	dead, fresh := r.node(2), r.node(allNodes)
	if err := dead.Kill(); err != nil {
		return err
	}
	if err := wipe(dead); err != nil {
		return err
	}
	if err := dead.Start(); err != nil { // as a supervisor does
		return err
	}
	if err := dead.WaitExit(ctx); err != nil {
		return fmt.Errorf("a node with an empty disk under an old name must not go on: %w", err)
	}
	fmt.Fprintf(r.cfg.Out, "%s with an empty disk said, exit code %d:\n%s\n", dead.ID, dead.ExitCode(), dead.LogTail(3))
	if dead.ExitCode() == 0 {
		return fmt.Errorf("%s ended with exit code 0", dead.ID)
	}
	r.refused[dead] = true
	if _, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "remove", dead.ID); err != nil {
		return err
	}
	if err := r.letIn(ctx, fresh); err != nil {
		return err
	}
	if err := fresh.Start(); err != nil {
		return err
	}
	if err := fresh.WaitReady(ctx); err != nil {
		return err
	}
	return r.waitMembers(ctx, "n1", "n3", "n6")
}

// refuseRestore tries a restore where there is something to lose.
func (r *run) refuseRestore(ctx context.Context) error {
	file := r.backupFile() + ".first"
	if _, err := r.operator.do(ctx, r.cluster.Nodes, "snapshot", "save", file); err != nil {
		return err
	}
	return r.operator.refused(ctx, r.cluster.Nodes, "not empty", "snapshot", "restore", file)
}
