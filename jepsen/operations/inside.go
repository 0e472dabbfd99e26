package operations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
)

// restoreMoment is how long the followers go on at a time while the backup is restored.
const restoreMoment = 2 * time.Millisecond

// restoreKilled restores the backup, kills the leader with SIGKILL while the restore
// is under way, starts it again, and looks: each node must have all of the backup
// or nothing, as the others. If it is nothing the backup is restored again.
func (r *run) restoreKilled(ctx context.Context) error {
	var inside bool
	err := pause.Until(ctx, pollPause, func() (err error) { // on a busy machine nodes may not have answered in time, and nothing is done
		inside, err = r.killInside(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.cluster.StartAll(ctx); err != nil {
		return err
	}
	counts, err := r.counts(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.cfg.Out, "the leader was killed while the backup was restored: %v; the nodes have %v tasks of %d then\n", inside, counts, r.report.backupTasks)
	if err := wholeOrNothing(counts, r.report.backupTasks); err != nil || counts[0] > 0 {
		return err
	}
	return pause.Until(ctx, pollPause, func() error {
		_, err := r.claimq(ctx, "snapshot", "restore", r.backupFile())
		counts, errCount := r.counts(ctx)
		if errCount != nil || wholeOrNothing(counts, r.report.backupTasks) != nil || counts[0] == 0 {
			return errors.Join(err, errCount, fmt.Errorf("restored again, the nodes have %v tasks", counts))
		}
		return nil // or it was done, and the answer went with a leader
	})
}

// wholeOrNothing says what is wrong with how many tasks the nodes have.
func wholeOrNothing(counts []int, whole int) error {
	for _, n := range counts {
		if n != counts[0] || n != 0 && n != whole {
			return fmt.Errorf("the nodes have %v tasks after a restore of %d whose leader was killed: each must have all or none, as the others", counts, whole)
		}
	}
	return nil
}

// killInside restores the backup and kills the leader once its state has begun to take
// it. The followers stand still but for moments, and while it is looked: so even a small
// restore is under way for some looks. inside is false if it was over before. An error
// says that the restore was refused: nothing was changed, and nobody killed.
func (r *run) killInside(ctx context.Context) (inside bool, err error) {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return false, err
	}
	const applied = "claimq_raft_applied_index" // which a node tells without the others
	before, err := leader.Metric(ctx, applied)
	if err != nil {
		return false, err
	}
	over := make(chan error, 1)
	go func() {
		_, err := procs.Command(ctx, r.cfg.Binary, []*procs.Node{leader}, "snapshot", "restore", r.backupFile())
		over <- err
	}()
	for {
		err := r.others(leader, (*procs.Node).Pause)
		index, errLook := leader.Metric(ctx, applied)
		if inside = index > before; inside {
			err = errors.Join(err, leader.Kill())
		}
		if err = errors.Join(err, errLook, r.others(leader, (*procs.Node).Continue)); err != nil || inside {
			return <-over != nil && inside, err // else it was over just now
		}
		select {
		case err := <-over:
			if err != nil {
				return false, fmt.Errorf("the restore failed before its leader was killed: %w", err)
			}
			return false, leader.Kill()
		case <-time.After(restoreMoment):
		}
	}
}

// others does something with the nodes that do not lead.
func (r *run) others(leader *procs.Node, do func(*procs.Node) error) error {
	var errs []error
	for _, n := range r.cluster.Nodes {
		if n != leader {
			errs = append(errs, do(n))
		}
	}
	return errors.Join(errs...)
}

// counts asks each node for how many tasks there are, by a linearizable read, until it
// answers.
func (r *run) counts(ctx context.Context) ([]int, error) {
	var counts []int
	for _, n := range r.cluster.Nodes {
		var stats wire.Stats
		err := pause.Until(ctx, pollPause, func() error {
			return n.Ask(ctx, http.MethodGet, "/api/stats", nil, &stats)
		})
		if err != nil {
			return nil, fmt.Errorf("count the tasks at %s: %w", n.ID, err)
		}
		count := 0
		for taskType, byStatus := range stats.Types {
			count += countOf(taskType, byStatus)
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// countOf returns how many tasks of the type there are, 0 of those that the load's schedule
// submits: it goes on after a restore.
func countOf(taskType string, byStatus map[string]int64) int {
	count := 0
	for _, n := range byStatus {
		if taskType != history.TickType {
			count += int(n)
		}
	}
	return count
}
