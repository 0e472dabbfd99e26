package faults

import (
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// A node can lose power at any moment of its life: in the middle of its first start, of its
// first election, of its first tasks. It starts again with everything that it acknowledged.
// Until then its disk fails, and it says so instead of crashing.
func TestPower_everyMoment(t *testing.T) {
	t.Parallel()
	const (
		last = 120 // changes of the disk: a start makes about 70, a task 5
		step = 3   // one of these is tried
	)
	for changes := 1; changes <= last; changes += step {
		torn := changes%(2*step) == 1
		t.Run(fmt.Sprintf("after change %d, torn %v", changes, torn), func(t *testing.T) {
			t.Parallel()
			loseAfter(t, changes, torn)
		})
	}
}

// loseAfter cuts a node's power after that number of changes of its disk.
func loseAfter(t *testing.T, changes int, torn bool) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts FUSE file systems: run it as root")
	}
	dir := t.TempDir()
	disk, err := lossyfs.New(filepath.Join(dir, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	p, err := procs.New(procs.Config{Binary: binary(), Dir: dir, Nodes: 1, DataDirs: []string{filepath.Join(disk.Dir(), "data")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	r := &rig{Cluster: &Cluster{Cluster: p}, t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	n := r.Nodes[0]
	if torn {
		disk.CutAfter(changes, rand.New(rand.NewSource(int64(changes))))
	} else {
		disk.CutAfter(changes, nil)
	}

	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	acked := r.submitUntil(func() bool { return !disk.Powered() })
	r.endsWell(n)
	if err := disk.Restore(); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	r.whole()
	r.has(n, acked)
}

// submitUntil submits tasks to the first node until done, and returns the ids of
// acknowledged ones.
func (r *rig) submitUntil(done func() bool) (acked []uint64) {
	ctx := r.within(patience)
	for !done() {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		id, err := r.submit(attempt, r.Nodes[0])
		cancel()
		switch {
		case err == nil:
			acked = append(acked, id)
		case ctx.Err() != nil:
			r.t.Fatalf("submit tasks: %v\n%s", err, r.Nodes[0].LogTail(5))
		default:
			<-time.After(5 * time.Millisecond)
		}
	}
	return acked
}

// endsWell waits until the node whose disk is gone has ended, which its next write causes.
// It must not crash.
func (r *rig) endsWell(n *procs.Node) {
	r.t.Helper()
	r.submitUntil(func() bool { return !n.Running() })
	if code := n.ExitCode(); code != 1 && code != 70 {
		r.t.Errorf("it ended with exit code %d, want 1 or 70; it said:\n%s", code, n.LogTail(30))
	}
}

// has checks that the node has the tasks.
func (r *rig) has(n *procs.Node, ids []uint64) {
	r.t.Helper()
	for _, id := range ids {
		if err := r.call(r.within(patience), http.MethodGet, fmt.Sprintf("%s/api/tasks/%d", n.URL(), id), "", &struct{}{}); err != nil {
			r.t.Errorf("task %d of %d that were acknowledged: %v", id, len(ids), err)
		}
	}
}
