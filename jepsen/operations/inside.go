package operations

import (
	"context"
	"encoding/json"
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
	inside, err := r.killInside(ctx)
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
	fmt.Fprintf(r.cfg.Out, "the leader was killed while the backup was restored: %v; the nodes have %v tasks of %d then\n", inside, counts, r.report.BackupTasks)
	if err := wholeOrNothing(counts, r.report.BackupTasks); err != nil {
		return err
	}
	if counts[0] > 0 {
		return nil
	}
	return r.untilDone(ctx, func() error {
		_, err := r.operator.do(ctx, r.cluster.Nodes, "snapshot", "restore", r.backupFile())
		counts, errCount := r.counts(ctx)
		if errCount != nil || wholeOrNothing(counts, r.report.BackupTasks) != nil || counts[0] == 0 {
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

// killInside restores the backup and kills the leader once the restore is seen under way.
// It is false if the restore was over before.
func (r *run) killInside(ctx context.Context) (seen bool, err error) {
	err = r.untilDone(ctx, func() error { // on a busy machine nodes may not have answered in time, and nothing is done
		leader, err := r.cluster.WaitLeader(ctx)
		if err != nil {
			return err
		}
		slow, quick := context.WithCancel(ctx)
		var holding sync.WaitGroup
		holding.Go(func() { err = r.holdUp(slow, leader) })
		inside, errKill := r.killWhenSeen(ctx, leader)
		quick()
		holding.Wait()
		seen = inside
		return errors.Join(errKill, err)
	})
	return seen, err
}

// holdUp stops the nodes that do not lead again and again, each time for restoreDelay,
// until ctx ends.
func (r *run) holdUp(ctx context.Context, leader *procs.Node) error {
	for pause.For(ctx, restoreDelay/3) {
		var errs []error
		for _, n := range r.cluster.Nodes {
			if n != leader {
				errs = append(errs, n.Pause())
			}
		}
		pause.For(ctx, restoreDelay)
		for _, n := range r.cluster.Nodes {
			if n != leader {
				errs = append(errs, n.Continue())
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// killWhenSeen restores the backup at the leader, which it kills once it tells of the
// restore, or the restore is over. An error says that the restore was refused: nothing was
// changed, and nobody killed.
func (r *run) killWhenSeen(ctx context.Context, leader *procs.Node) (inside bool, err error) {
	looking, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan error, 1)
	go func() {
		_, err := r.operator.do(ctx, []*procs.Node{leader}, "snapshot", "restore", r.backupFile())
		stop()
		answered <- err
	}()
	if look(looking, leader) {
		err := leader.Kill()
		return <-answered != nil, err // else it was over just now
	}
	if err := <-answered; err != nil {
		return false, fmt.Errorf("the restore failed before its leader was killed: %w", err)
	}
	return false, leader.Kill()
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
					return
				}
			}
		})
	}
	lookers.Wait()
	return len(seen) > 0
}

// counts asks each node for how many tasks there are, by a linearizable read.
func (r *run) counts(ctx context.Context) ([]int, error) {
	var counts []int
	for _, n := range r.cluster.Nodes {
		err := r.untilDone(ctx, func() error {
			count, err := countTasks(ctx, n)
			if err == nil {
				counts = append(counts, count)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("count the tasks at %s: %w", n.ID, err)
		}
	}
	return counts, nil
}

// countTasks asks the node once.
func countTasks(ctx context.Context, n *procs.Node) (int, error) {
	var stats wire.Stats
	if err := n.Ask(ctx, http.MethodGet, "/api/stats", nil, &stats); err != nil {
		return 0, err
	}
	count := 0
	for _, n := range stats.Counts {
		count += int(n)
	}
	return count, nil
}

// agree checks that all nodes have the same state, by their hashes at one index.
func (r *run) agree(ctx context.Context) error {
	return r.untilDone(ctx, func() error {
		said, err := r.operator.do(ctx, r.cluster.Nodes, "cluster", "hash", "--output", "json")
		if err != nil {
			return err
		}
		var hash wire.ClusterHash
		if err := json.Unmarshal([]byte(said), &hash); err != nil {
			return fmt.Errorf("read the nodes' hashes: %w", err)
		}
		if !hash.Agree {
			r.report.violate("the nodes' states differ: %s", said)
		}
		return nil
	})
}

// untilDone asks again and again, since there may be no leader yet.
func (r *run) untilDone(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil || !pause.For(ctx, pollPause) {
			return err
		}
	}
}
