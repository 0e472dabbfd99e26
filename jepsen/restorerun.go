package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/hosts"
	"github.com/claimq/claimq/jepsen/procs"
)

const (
	restoreNodes = 3
	// restoreDelay is what every message between nodes takes longer while the backup is
	// restored: so even one of an empty cluster is under way for some answers of a node.
	restoreDelay = 15 * time.Millisecond
	// restoreLookers ask the leader at the same time how far it is, each again once it
	// has an answer, which takes a message there and back.
	restoreLookers = 6
	// restoreAfter is how many tasks are submitted after the restore.
	restoreAfter = 30
	// restoreAsk is how long after a question that was not answered it is asked again.
	restoreAsk = 50 * time.Millisecond
)

// restoreRun is a restore into three new nodes whose leader is killed.
type restoreRun struct {
	restoreConfig
	tasks  int
	backup string
	part   float64 // of the backup that the leader has taken when it is killed, up to 1; 0 or less: it has begun

	cluster *faults.Cluster
	seen    wire.Restore // what the leader told last
	missed  bool         // the restore was over before
	whole   bool         // the backup was there after the kill; else nothing of it
}

func (r *restoreRun) String() string {
	switch {
	case r.missed:
		return "the restore was over before its leader was killed"
	case r.tasks == 0:
		return fmt.Sprintf("killed at %d of %d bytes; there is nothing to see of it, and it was restored again", r.seen.Taken, r.seen.Bytes)
	case r.whole:
		return fmt.Sprintf("killed at %d of %d bytes; the whole backup was there", r.seen.Taken, r.seen.Bytes)
	}
	return fmt.Sprintf("killed at %d of %d bytes; nothing of it was there, and it was restored again", r.seen.Taken, r.seen.Bytes)
}

// inFolder makes the run in a folder of its own, which is left if it fails.
func (r *restoreRun) inFolder(ctx context.Context, name string, seed int64) error {
	ctx, cancel := context.WithTimeout(ctx, restoreRunMax)
	defer cancel()
	dir := filepath.Join(r.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var err error
	if r.cluster, err = faults.Start(ctx, faults.Config{Binary: r.binary, Dir: dir, Nodes: restoreNodes, Seed: seed}); err != nil {
		return err
	}
	if err := errors.Join(r.make(ctx), r.cluster.Close()); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// make kills the leader in the midst of the restore, starts it again, and looks: every
// node has all of the backup or nothing, and nothing that is acknowledged after it is lost,
// also by nodes that the killed one leads, and after all have been killed.
func (r *restoreRun) make(ctx context.Context) error {
	killed, err := r.killInside(ctx)
	if err != nil {
		return err
	}
	if err := r.cluster.Procs.StartAll(ctx); err != nil {
		return err
	}
	counts, err := r.counts(ctx)
	if err != nil {
		return err
	}
	if err := wholeOrNothing(counts, r.tasks); err != nil {
		return err
	}
	if r.whole = counts[0] == r.tasks && r.tasks > 0; !r.whole {
		if err := r.restoreAgain(ctx); err != nil {
			return err
		}
	}
	if err := r.lead(ctx, killed); err != nil {
		return err
	}
	for i := range restoreAfter {
		n := r.cluster.Nodes()[i%restoreNodes]
		task := fmt.Sprintf(`{"task_type":"after","params":1,"idempotency_key":"after-%d"}`, i)
		if err := untilDone(ctx, func() error { _, err := post(ctx, n, "/api/tasks", task); return err }); err != nil {
			return fmt.Errorf("submit after the restore at %s: %w", n.ID, err)
		}
	}
	if err := r.allHave(ctx, r.tasks+restoreAfter, "after submits"); err != nil {
		return err
	}
	for _, n := range r.cluster.Nodes() {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	if err := r.cluster.Procs.StartAll(ctx); err != nil {
		return err
	}
	if err := r.allHave(ctx, r.tasks+restoreAfter, "after all were killed"); err != nil {
		return err
	}
	return r.agree(ctx)
}

// agree checks that all nodes have the same state, by their hashes at one index.
func (r *restoreRun) agree(ctx context.Context) error {
	said := ""
	err := untilDone(ctx, func() (err error) {
		said, err = r.claimq(ctx, "cluster", "hash", "--output", "json")
		return err
	})
	if err != nil {
		return err
	}
	var hash wire.ClusterHash
	if err := json.Unmarshal([]byte(said), &hash); err != nil {
		return fmt.Errorf("read the nodes' hashes: %w", err)
	}
	if !hash.Agree {
		return fmt.Errorf("the nodes' states differ: %s", said)
	}
	return nil
}

// claimq runs a command against all nodes.
func (r *restoreRun) claimq(ctx context.Context, args ...string) (string, error) {
	return askClaimq(ctx, r.binary, r.cluster.URLs(), args...)
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

// killInside restores the backup and kills the leader once it is seen to have taken the
// run's part of it. It returns the node that was killed.
func (r *restoreRun) killInside(ctx context.Context) (*procs.Node, error) {
	slow := map[hosts.Link]hosts.Quality{}
	for from := range restoreNodes {
		for to := range restoreNodes {
			if from != to {
				slow[hosts.Link{From: from + 1, To: to + 1}] = hosts.Quality{Delay: restoreDelay}
			}
		}
	}
	quick, err := r.cluster.Net.Shape(slow)
	if err != nil {
		return nil, err
	}
	for {
		leader, err := r.cluster.Procs.WaitLeader(ctx)
		if err != nil {
			return nil, err
		}
		if err = r.restoreSeen(ctx, leader); err == nil {
			return leader, quick()
		}
		if !pause.For(ctx, restoreAsk) { // on a busy machine nodes may not have answered in time
			return nil, err
		}
	}
}

// restoreSeen restores the backup at the leader, which it kills once the run's part has
// been taken, or the restore was over before. An error says that the restore was refused:
// nothing was changed, and nobody killed.
func (r *restoreRun) restoreSeen(ctx context.Context, leader *procs.Node) error {
	looking, stop := context.WithCancel(ctx)
	answered := make(chan error, 1)
	go func() {
		_, err := askClaimq(ctx, r.binary, []string{leader.URL()}, "snapshot", "restore", r.backup)
		stop()
		answered <- err
	}()
	var inside bool
	if r.seen, inside = r.look(looking, leader); !inside {
		if err := <-answered; err != nil {
			return fmt.Errorf("the restore failed before its leader was killed: %w", err)
		}
		r.missed = true
		return leader.Kill()
	}
	err := leader.Kill()
	r.missed = <-answered == nil // else with an error, as its leader is dead
	return err
}

// look asks the node how far the restore is until it has taken the run's part. It is
// false if ctx ended before.
func (r *restoreRun) look(ctx context.Context, n *procs.Node) (at wire.Restore, inside bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan wire.Restore, restoreLookers)
	var lookers sync.WaitGroup
	for i := range restoreLookers {
		lookers.Go(func() {
			wait := time.Duration(i) * 2 * restoreDelay / restoreLookers // one after the other
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
				}
				view, err := procs.View(ctx, n)
				if err == nil && view.Restore != nil && float64(view.Restore.Taken) >= r.part*float64(view.Restore.Bytes) {
					seen <- *view.Restore
					return
				}
				wait = 0
			}
		})
	}
	select {
	case at = <-seen:
		inside = true
	case <-ctx.Done():
	}
	stop()
	lookers.Wait()
	return at, inside
}

// restoreAgain restores the backup into the cluster that has nothing of it. On a busy
// machine the leader may go in between, and the answer with it.
func (r *restoreRun) restoreAgain(ctx context.Context) error {
	return untilDone(ctx, func() error {
		_, err := r.claimq(ctx, "snapshot", "restore", r.backup)
		if missing := r.allHave(ctx, r.tasks, "restored again"); missing != nil {
			return errors.Join(err, missing)
		}
		if r.tasks == 0 {
			return err // there is nothing to see of it
		}
		return nil
	})
}

// lead hands the leadership to the node.
func (r *restoreRun) lead(ctx context.Context, n *procs.Node) error {
	return untilDone(ctx, func() error {
		leader, err := r.cluster.Procs.WaitLeader(ctx)
		if err != nil || leader == n {
			return err
		}
		_, err = r.claimq(ctx, "cluster", "transfer", n.ID)
		return err
	})
}

// allHave checks that each node has so many tasks.
func (r *restoreRun) allHave(ctx context.Context, want int, when string) error {
	counts, err := r.counts(ctx)
	if err != nil {
		return err
	}
	for _, n := range counts {
		if n != want {
			return fmt.Errorf("%s: the nodes have %v tasks, they must have %d", when, counts, want)
		}
	}
	return nil
}

// counts asks each node for how many tasks there are, by a linearizable read.
func (r *restoreRun) counts(ctx context.Context) ([]int, error) {
	var counts []int
	for _, n := range r.cluster.Nodes() {
		err := untilDone(ctx, func() error {
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

// untilDone asks again and again, since there may be no leader yet.
func untilDone(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if !pause.For(ctx, restoreAsk) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// countTasks asks the node once.
func countTasks(ctx context.Context, n *procs.Node) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL()+"/api/stats", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var stats wire.Stats
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", resp.StatusCode)
	}
	count := 0
	for _, n := range stats.Counts {
		count += int(n)
	}
	return count, nil
}
