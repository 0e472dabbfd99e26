package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
)

// loseAndRestore backs the cluster up under a new load, destroys it under that
// load, restores the backup into a new one, and checks what is there.
func (r *run) loseAndRestore(ctx context.Context) error {
	r.startLoad(ctx)
	if err := r.stage(ctx, "back up", r.backUp); err != nil {
		return err
	}
	if err := r.stage(ctx, "lose all disks", r.lose); err != nil {
		return err
	}
	r.stopLoad()
	lost := r.rec.History()
	r.report.measureLoss(lost)
	if err := r.stage(ctx, "restore into a new cluster", r.restore); err != nil {
		return err
	}
	r.report.restoredAt = r.rec.Now()
	r.startLoad(ctx)
	if err := r.stage(ctx, "load after the restore", r.pause); err != nil {
		return err
	}
	if err := r.settleAll(ctx); err != nil {
		return fmt.Errorf("end the last load: %w", err)
	}
	if err := r.agree(ctx); err != nil {
		return err
	}
	h := r.rec.History()
	r.report.judgeReuse(h)
	found := check.Check(r.report.surviving(h), check.Options{Drained: true})
	r.report.checked(fmt.Sprintf("after the restore of the backup at index %d, less %d answers after it", r.report.BackupIndex, r.report.Lost), found)
	return nil
}

// inspected is what `snapshot inspect` says, as far as it is of use here.
type inspected struct {
	Index  uint64         `json:"index"`
	Counts map[string]int `json:"counts"`
}

// backUp saves a backup and looks at it.
func (r *run) backUp(ctx context.Context) error {
	r.report.backupFrom = r.rec.Now()
	if _, err := r.operator.do(ctx, r.cluster.Nodes, "snapshot", "save", r.backupFile()); err != nil {
		return err
	}
	text, err := r.operator.do(ctx, nil, "snapshot", "inspect", r.backupFile(), "--output", "json")
	if err != nil {
		return err
	}
	var in inspected
	if err := json.Unmarshal([]byte(text), &in); err != nil || in.Index == 0 {
		return fmt.Errorf("snapshot inspect names no index: %w\n%s", err, text)
	}
	r.report.BackupIndex = in.Index
	for _, count := range in.Counts {
		r.report.BackupTasks += count
	}
	return nil
}

// lose kills all nodes at once, in the middle of the load, and removes their data.
func (r *run) lose(ctx context.Context) error {
	if err := r.pause(ctx); err != nil {
		return err
	}
	for _, n := range r.cluster.Nodes {
		if n.Running() {
			if err := n.Kill(); err != nil {
				return err
			}
		}
	}
	for _, n := range r.cluster.Nodes {
		if err := wipe(n); err != nil {
			return err
		}
	}
	return nil
}

// restore makes a new cluster of three empty nodes and restores the backup, after
// a damaged copy of it was refused; its leader is killed meanwhile.
func (r *run) restore(ctx context.Context) error {
	dir := filepath.Join(r.cfg.Dir, "restored")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	r.cluster.Close()
	var err error
	r.cluster, err = procs.Start(ctx, procs.Config{Binary: r.cfg.Binary, Dir: dir, Nodes: firstNodes, Flags: nodeFlags()})
	if err != nil {
		return err
	}
	damaged, err := damage(r.backupFile())
	if err != nil {
		return err
	}
	if err := r.operator.refused(ctx, r.cluster.Nodes, "", "snapshot", "restore", damaged); err != nil {
		return err
	}
	if err := r.restoreKilled(ctx); err != nil {
		return err
	}
	if err := r.waitMembers(ctx, "n1", "n2", "n3"); err != nil {
		return err
	}
	_, err = r.operator.do(ctx, r.cluster.Nodes, "cluster", "status")
	return err
}

// damage flips one bit in the middle of a copy, and returns where that is.
func damage(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if len(b) == 0 {
		return "", errors.New("the backup is empty")
	}
	b[len(b)/2] ^= 1
	return file + ".damaged", os.WriteFile(file+".damaged", b, 0o600)
}

// surviving is the history of what is there after the restore: what the backup
// holds, what nobody knows whether it does, and all that came after the restore.
func (r *Report) surviving(h *history.History) *history.History {
	s := *h
	s.Ops = nil
	for i := range h.Ops {
		op := h.Ops[i]
		if op.Call >= r.restoredAt || op.Index <= r.BackupIndex { // 0: whoever answered knew of no index
			s.Ops = append(s.Ops, op)
			continue
		}
		r.Lost++
		if op.Outcome == history.OK && op.Return < r.backupFrom {
			r.violate("answered before the backup was begun, and not in it: index %d of %d, %s", op.Index, r.BackupIndex, check.Describe(&op))
		}
	}
	return &s
}
