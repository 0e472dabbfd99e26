package cluster

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// newMemoryNode starts a node without Raft whose entries go to apply. It serves when
// newMemoryNode returns.
func newMemoryNode(t *testing.T, apply func(n *Node, entry []byte) batch.Future, change ...func(*Config)) *Node {
	t.Helper()
	cfg := Config{NodeID: "n"}
	for _, c := range change {
		c(&cfg)
	}
	n, err := newNode(cfg.withDefaults(), Parts{UUID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	n.batcher = n.newBatcher(func(entry []byte) batch.Future { return apply(n, entry) })
	n.run()
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	if !n.IsLeader() {
		t.Fatal("a node without Raft does not serve")
	}
	return n
}

// mustPropose proposes cmd and returns its result.
func mustPropose(t *testing.T, n *Node, cmd command.Command) fsm.Result {
	t.Helper()
	p, err := n.Propose(context.Background(), cmd)
	if err != nil || p.Result.Code != "" {
		t.Fatalf("propose %T: %v, %q", cmd, err, p.Result.Code)
	}
	return p.Result
}

// An extend that is in the log before an expiry, but was not applied when the leader
// looked, wins. The claim's lease must still be watched: its next end requeues the task.
func TestLeadership_extendBeforeExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease = 1000 // ms
		var hold atomic.Pointer[command.Hold]
		var expiries atomic.Int32
		n := newMemoryNode(t, func(n *Node, entry []byte) batch.Future {
			stamp, commands, err := command.DecodeEntry(entry)
			if err != nil {
				t.Error(err)
			}
			if _, ok := commands[0].(command.Expire); ok {
				if expiries.Add(1) == 1 {
					extend := command.Extend{Hold: *hold.Load(), LeaseMS: lease}
					if f := n.applyEntry(command.AppendEntry(nil, stamp, extend)); f.Response().(*fsm.Applied).Results[0].Code != "" {
						t.Error("the extend was refused")
					}
				}
			}
			return n.applyEntry(entry)
		})
		mustPropose(t, n, command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`{}`)}}})
		claimed := mustPropose(t, n, command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: lease}).Claims[0]
		hold.Store(&command.Hold{ID: claimed.Task.ID, WorkerID: "w", Token: claimed.Token})

		status := func() (s fsm.Status) {
			n.fsm.Read(func(m *fsm.Machine) { s = m.Get(claimed.Task.ID).Status })
			return s
		}
		<-time.After(1900 * time.Millisecond)
		if s := status(); s != fsm.StatusClaimed || expiries.Load() != 1 {
			t.Fatalf("after the extend: %v, %d expiries; want claimed, 1", s, expiries.Load())
		}
		<-time.After(1100 * time.Millisecond)
		if s := status(); s != fsm.StatusPending {
			t.Errorf("a second after the extended lease has ended the task is %v, want pending", s)
		}
	})
}

// A leadership that ends while it is being established leaves no timers behind that would
// collect the claims of later leaders.
func TestLeadership_endsBeforeTimers(t *testing.T) {
	t.Parallel()
	n, err := newNode(Config{NodeID: "n"}.withDefaults(), Parts{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel(errNodeClosed)
	l := &leadership{node: n.role, timers: lease.NewTimers(), waiters: batch.NewWaiters(batch.WaitersConfig{})}
	l.ctx, l.cancel = context.WithCancelCause(n.ctx)
	l.end()
	n.leaders().startDuties(l)
	l.wg.Wait()
	n.fsm.ApplyEntry(1, 1, replicatest.Entry(1, command.SetLevel{Level: fsm.FeatureLevel()},
		command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}}, command.ClaimNext{WorkerID: "w1", Limit: 1, LeaseMS: 1000}))
	if n.fsm.Claims() != 1 {
		t.Fatalf("%d claims live", n.fsm.Claims())
	}
	if expired, _ := l.timers.Due(l.read, math.MaxInt64); len(expired) > 0 {
		t.Error("claims are still handed to a leadership that has ended")
	}
}
