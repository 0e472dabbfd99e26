package operations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// restoreDelay is how long the followers stand still again and again while the backup
	// is restored: so even a small one is under way for some answers of the leader.
	restoreDelay = 15 * time.Millisecond
	// restoreLookers ask the leader at the same time how far it is, each again once it
	// has an answer, which takes a message there and back.
	restoreLookers = 6
)

// restoreKilled restores the backup, kills the leader with SIGKILL once it says that the
// restore is under way, starts it again, and looks: each node must have all of the backup
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

// killInside restores the backup and kills the leader once it tells of the restore, or the
// restore is over; inside is false then. An error says that the restore was refused:
// nothing was changed, and nobody killed.
func (r *run) killInside(ctx context.Context) (inside bool, err error) {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return false, err
	}
	under, over := context.WithCancel(ctx)
	var beside sync.WaitGroup
	var errHold, errRestore error
	slow, quick := context.WithCancel(ctx)
	beside.Go(func() { errHold = r.holdUp(slow, leader) })
	beside.Go(func() {
		_, errRestore = r.command(ctx, r.cfg.Binary, []*procs.Node{leader}, "snapshot", "restore", r.backupFile())
		over()
	})
	seen := look(under, leader)
	if !seen {
		quick()
		beside.Wait()
		if errRestore != nil {
			return false, errors.Join(fmt.Errorf("the restore failed before its leader was killed: %w", errRestore), errHold)
		}
	}
	err = leader.Kill()
	quick()
	beside.Wait()
	return seen && errRestore != nil, errors.Join(err, errHold) // else it was over just now
}

// holdUp stops the nodes that do not lead again and again, each time for restoreDelay,
// until ctx ends.
func (r *run) holdUp(ctx context.Context, leader *procs.Node) error {
	others := func(do func(*procs.Node) error) error {
		var errs []error
		for _, n := range r.cluster.Nodes {
			if n != leader {
				errs = append(errs, do(n))
			}
		}
		return errors.Join(errs...)
	}
	var err error
	for err == nil && pause.For(ctx, restoreDelay/3) {
		err = others((*procs.Node).Pause)
		pause.For(ctx, restoreDelay)
		err = errors.Join(err, others((*procs.Node).Continue))
	}
	return err
}

// look asks the node until it tells of a restore under way. It is false if ctx ended
// before.
func look(ctx context.Context, n *procs.Node) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan struct{}, restoreLookers)
	var lookers sync.WaitGroup
	for i := range restoreLookers {
		lookers.Go(func() {
			wait := time.Duration(i) * 2 * restoreDelay / restoreLookers // one after the other
			for ; pause.For(ctx, wait); wait = 0 {
				if view, err := procs.View(ctx, n); err == nil && view.Restore != nil {
					seen <- struct{}{}
					stop()
				}
			}
		})
	}
	lookers.Wait()
	return len(seen) > 0
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
		for _, n := range stats.Counts {
			count += int(n)
		}
		counts = append(counts, count)
	}
	return counts, nil
}
