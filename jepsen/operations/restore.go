package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/history"
)

// restoreMoment is the length of the moments for which the followers run while the leader is to
// be killed within a restore.
const restoreMoment = 2 * time.Millisecond

// loseAndRestore backs the cluster up under a new load, destroys it under that load, restores
// the backup into a new one, and checks the result.
func (r *run) loseAndRestore(ctx context.Context) error {
	r.startLoad(ctx)
	if err := r.acts(ctx, []act{{"back up", r.backUp}, {"read the trail", r.readOn}, {"lose all disks", r.lose}}); err != nil {
		return err
	}
	r.stopLoad()
	r.report.measureLoss(r.rec.History())
	if err := r.act(ctx, "restore into a new cluster", r.restore); err != nil {
		return err
	}
	r.report.restoredAt = r.rec.Now()
	r.startLoad(ctx)
	if err := r.act(ctx, "load after the restore", r.pause); err != nil {
		return err
	}
	h, err := r.settleAll(ctx)
	if err != nil {
		return err
	}
	if err := r.agree(ctx); err != nil {
		return err
	}
	if err := r.judgeReaders(ctx); err != nil {
		return err
	}
	r.report.judgeReuse(h)
	left := r.report.surviving(h)
	r.report.judge(fmt.Sprintf("after the restore of the backup at index %d, less %d answers after it", r.report.backupIndex, r.report.lost), left)
	return nil
}

// agree checks that all nodes have the same state, by their hashes at one index.
func (r *run) agree(ctx context.Context) error {
	return pause.Until(ctx, pollPause, func() error {
		said, err := r.once(ctx, "cluster", "hash", "--output", "json")
		if err != nil {
			return err
		}
		var hash wire.ClusterHash
		if err := json.Unmarshal([]byte(said), &hash); err != nil {
			return fmt.Errorf("read the nodes' hashes: %w", err)
		}
		if !hash.Agree {
			r.report.found(ruleAgree, nil, "the nodes' states differ: %s", said)
		}
		return nil
	})
}

// backUp saves a backup and checks it.
func (r *run) backUp(ctx context.Context) error {
	r.report.backupFrom = r.rec.Now()
	if _, err := r.claimq(ctx, "snapshot", "save", r.backupFile()); err != nil {
		return err
	}
	text, err := r.claimq(ctx, "snapshot", "inspect", r.backupFile(), "--output", "json")
	if err != nil {
		return err
	}
	var in struct{ Index uint64 }
	if err := json.Unmarshal([]byte(text), &in); err != nil || in.Index == 0 {
		return fmt.Errorf("snapshot inspect names no index: %w\n%s", err, text)
	}
	r.report.backupIndex = in.Index
	return nil
}

// lose kills all nodes at once, in the middle of the load, and removes their data.
func (r *run) lose(ctx context.Context) error {
	if err := r.pause(ctx); err != nil {
		return err
	}
	errs := []error{procs.KillAll(r.cluster.Nodes...)}
	for _, n := range r.cluster.Nodes {
		errs = append(errs, n.Wipe())
	}
	return errors.Join(errs...)
}

// restore creates a new cluster of three empty nodes and restores the backup, during which its
// first leader is killed.
func (r *run) restore(ctx context.Context) error {
	dir := filepath.Join(r.cfg.Dir, "restored")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	r.cluster.Close()
	var err error
	r.cluster, err = procs.New(procs.Config{Binary: r.cfg.Binary, Dir: dir, Nodes: firstNodes, Flags: nodeFlags()})
	if err != nil {
		return err
	}
	if err := errors.Join(r.lastWords(), r.startAll(ctx)); err != nil {
		return err
	}
	r.attend(ctx)
	if err := pause.Until(ctx, pollPause, func() error { return r.killInside(ctx) }); err != nil {
		return err
	}
	err = pause.Until(ctx, pollPause, func() error { // on a busy machine nodes may not have answered in time, and nothing was done
		printed, err := r.once(ctx, "snapshot", "restore", r.backupFile())
		if strings.Contains(printed, "not empty") { // it was done, but its answer was lost
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = r.claimq(ctx, "cluster", "status")
	return err
}

// killInside begins the restore, kills the leader with SIGKILL once its state has begun to take
// it, and starts the leader again. Then the nodes must have all of the backup or nothing: a part
// of it cannot be restored again, and is judged as lost. The followers stand still except for
// moments, so that even a small restore lasts for some looks.
func (r *run) killInside(ctx context.Context) error {
	if err := r.waitMembers(ctx, "n1", "n2", "n3"); err != nil { // then the log stands still
		return err
	}
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	const applied = "claimq_raft_applied_index" // which a node reports without the others
	before, err := leader.Metric(ctx, applied)
	if err != nil {
		return err
	}
	over := make(chan error, 1)
	go func() {
		_, err := procs.Command(ctx, r.cfg.Binary, []*procs.Node{leader}, "snapshot", "restore", r.backupFile())
		over <- err
	}()
	for {
		err := r.others(leader, (*procs.Node).Pause)
		index, errLook := leader.Metric(ctx, applied)
		inside := index >= before+3 // a barrier, the begin, and a chunk
		if inside {
			err = errors.Join(err, leader.Kill())
		}
		if err = errors.Join(err, errLook, r.others(leader, (*procs.Node).Continue)); err != nil {
			return err
		}
		if inside {
			fmt.Fprintf(r.cfg.Out, "the leader was killed while the backup was restored: %v\n", <-over != nil)
			return r.cluster.StartAll(ctx)
		}
		select {
		case err := <-over: // refused: on a busy machine nodes may not have answered in time
			return err
		case <-time.After(restoreMoment):
		}
	}
}

// others calls do for the nodes that do not lead.
func (r *run) others(leader *procs.Node, do func(*procs.Node) error) error {
	var errs []error
	for _, n := range r.cluster.Nodes {
		if n != leader {
			errs = append(errs, do(n))
		}
	}
	return errors.Join(errs...)
}

// surviving returns the history of what exists after the restore: the contents of the backup,
// what may or may not be in it, and everything after the restore, as if the new cluster's log
// went on where the backup's ends. An action on many tasks that was answered after the backup
// may have begun before.
func (r *Report) surviving(h *history.History) *history.History {
	s := *h
	s.Ops = nil
	ahead, lostFrom := r.backupIndex, int64(0)
	s.Trail = r.survivingTrail(h, ahead)
	for i := range h.Ops {
		op := h.Ops[i]
		switch {
		case op.Call >= r.restoredAt:
			for _, index := range []*uint64{&op.Index, &op.MinIndex} {
				if *index > 0 {
					*index += ahead
				}
			}
		case op.Index > r.backupIndex: // 0: the answering node knew no index
			if r.lost++; r.lost == 1 {
				lostFrom = op.Return
			}
			if op.Outcome == history.OK && op.Return < r.backupFrom {
				r.found(ruleBackup, &op, "answered before the backup was begun, and not in it: index %d of %d", op.Index, r.backupIndex)
			}
			if op.Kind != history.Act || op.Call > lostFrom {
				continue
			}
			op.Outcome, op.Index = history.Unknown, 0
		}
		s.Ops = append(s.Ops, op)
	}
	return &s
}

// survivingTrail returns the trail after the restore, with the indexes of the new cluster's
// events increased: its log is shorter, so they begin where indexes fall. Its own events
// from before the restore do not change.
func (r *Report) survivingTrail(h *history.History, ahead uint64) []history.Told {
	restored := len(h.Trail)
	for i := 1; i < restored; i++ {
		if h.Trail[i].Index < h.Trail[i-1].Index {
			restored = i
		}
	}
	before, trail := r.aheadBefore(h), []history.Told{}
	for i, e := range h.Trail {
		if i >= restored {
			e.Index += ahead
		} else if e.Index -= before; e.Index > r.backupIndex {
			continue
		}
		trail = append(trail, e)
	}
	return trail
}

// aheadBefore returns the difference between places and the first cluster's log, determined by
// its first submit in the backup.
func (r *Report) aheadBefore(h *history.History) uint64 {
	for _, op := range h.Ops {
		told := slices.IndexFunc(h.Trail, func(e history.Told) bool { return e.Kind == "submitted" && e.TaskID == op.TaskID })
		if op.Call < r.restoredAt && op.Created && op.Index > 0 && op.Index <= r.backupIndex && told >= 0 {
			return h.Trail[told].Index - op.Index
		}
	}
	return 0 // other rules find what the trail lacks
}
