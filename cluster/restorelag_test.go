package cluster

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// heapWatch records the peak of the live heap.
type heapWatch struct {
	peak atomic.Int64
	stop chan struct{}
	done sync.WaitGroup
}

func watchHeap() *heapWatch {
	w := &heapWatch{stop: make(chan struct{})}
	w.done.Go(func() {
		for {
			w.peak.Store(max(w.peak.Load(), liveBytes()))
			select {
			case <-w.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return w
}

// end ends the watch and returns the peak.
func (w *heapWatch) end() int64 {
	close(w.stop)
	w.done.Wait()
	return w.peak.Load()
}

// liveBytes collects garbage, and returns the live bytes.
func liveBytes() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// A follower that has missed more than the log keeps is sent a snapshot. Without memory for
// two states it never has both.
func TestRestore_laggingFollower(t *testing.T) { //nolint:paralleltest // it measures the heap
	const limit = 32 << 20
	addrs := freeAddrs(t, 3)
	list := make(map[string]string)
	for i, addr := range addrs {
		list[fmt.Sprintf("n%d", i+1)] = addr
	}
	c := &backupCluster{t: t}
	for i, addr := range addrs {
		cfg := testConfig(t, fmt.Sprintf("n%d", i+1), t.TempDir(), addr)
		cfg.InitialCluster, cfg.MemoryLimit = list, limit
		c.cfgs = append(c.cfgs, cfg)
	}
	c.open()
	for _, n := range c.nodes {
		n.snapshots.trailing = func(int64, int64) uint64 { return 1 }
	}
	submit := func(tasks int) {
		params := []byte(`"` + strings.Repeat("x", 8000) + `"`) // few tasks, much memory
		for ; tasks > 0; tasks -= 50 {
			s := command.Submit{Tasks: make([]fsm.NewTask, 50)}
			for i := range s.Tasks {
				s.Tasks[i] = fsm.NewTask{Type: "t", Params: params}
			}
			eventually(t, "a submit to be taken", func() bool {
				_, err := leaderOf(t, c.nodes...).Propose(context.Background(), s)
				return err == nil
			})
		}
	}
	submit(2500)
	leader := leaderOf(t, c.nodes...)
	lagging := 0
	if c.nodes[0] == leader {
		lagging = 1
	}
	eventually(t, "the follower to have it all", func() bool { return c.nodes[lagging].AppliedIndex() >= leader.AppliedIndex() })
	if _, err := c.nodes[lagging].snapshots.takeHere(context.Background()); err != nil {
		t.Fatal(err) // it begins with this state when it is started again
	}
	closeNode(t, c.nodes[lagging])
	c.nodes[lagging] = c.nodes[2]
	submit(600)
	leader = leaderOf(t, c.nodes...)
	if _, err := leader.TakeSnapshot(context.Background()); err != nil {
		t.Fatal(err)
	}

	watch := watchHeap()
	n := openNode(t, c.cfgs[lagging])
	eventually(t, "the follower to catch up", func() bool {
		return n.AppliedIndex() >= leader.AppliedIndex() && n.Ready() == nil
	})
	peak, state := watch.end(), n.fsm.Held().All
	after := liveBytes()
	t.Logf("%d bytes live at most, %d afterwards, a state takes %d", peak, after, state)
	if got := counted(n.stats.fsm.restores); got != 2 {
		t.Errorf("it restored %d snapshots, want its own and the leader's", got)
	}
	if peak > after+state/2 {
		t.Errorf("%d bytes live at most, %d afterwards, although a state takes %d", peak, after, state)
	}
	_, want := leader.StateHash()
	if _, got := n.StateHash(); got != want {
		t.Errorf("state hash %x, want %x", got, want)
	}
}
