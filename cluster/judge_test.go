package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// A refused or repeated settle is answered from the state, and writes nothing.
func TestNode_refusedSettles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		id := c.Propose(submitOf("mail", 2)).Result.Submitted[0].Task.ID
		token := c.Propose(claimOf("w", "mail")).Result.Claims[0].Token
		c.Propose(command.Complete{Hold: command.Hold{ID: id, WorkerID: "w", Token: token}, Result: []byte(`1`)})
		held := c.Propose(claimOf("w", "mail")).Result.Claims[0]
		<-time.After(time.Second)
		before, _ := leader.StateHash()

		hold := command.Hold{ID: held.Task.ID, WorkerID: "w", Token: held.Token}
		wrong := command.Hold{ID: held.Task.ID, WorkerID: "other", Token: held.Token}
		stale := command.Hold{ID: held.Task.ID, WorkerID: "w", Token: token}
		ended := command.Hold{ID: id, WorkerID: "other", Token: 99}
		for _, tc := range []struct {
			cmd  command.Command
			code fsm.Code
		}{
			{command.Complete{Hold: wrong, Result: make([]byte, 1<<20)}, fsm.CodeWrongWorker},
			{command.Fail{Hold: stale, Error: "e"}, fsm.CodeStaleClaim},
			{command.Extend{Hold: command.Hold{ID: 1 << 40, WorkerID: "w"}}, fsm.CodeTaskNotFound},
			{command.Release{Hold: ended}, fsm.CodeTaskCompleted},
			{command.Complete{Hold: command.Hold{ID: id, WorkerID: "w", Token: token}}, ""}, // repeated
			{command.Finalize{ID: held.Task.ID, ProcessorID: "p"}, fsm.CodeTaskNotClaimable},
			{command.Batch{Ops: []command.Command{command.Complete{Hold: wrong}, command.Release{Hold: ended}}}, ""},
			{command.Batch{Atomic: true, Ops: []command.Command{command.Complete{Hold: wrong}, command.Extend{Hold: hold}}}, fsm.CodeWrongWorker},
		} {
			p, err := leader.Propose(context.Background(), tc.cmd)
			if err != nil || p.Result.Code != tc.code || p.Index > before {
				t.Errorf("%T: %q at %d, %v; want %q at %d", tc.cmd, p.Result.Code, p.Index, err, tc.code, before)
			}
		}
		if after, _ := leader.StateHash(); after != before {
			t.Errorf("settles that were refused moved the log from %d to %d", before, after)
		}

		// One valid op is enough for the log.
		p := c.Propose(command.Batch{Ops: []command.Command{command.Complete{Hold: wrong}, command.Extend{Hold: hold}}})
		if p.Result.Results[0].Code != fsm.CodeWrongWorker || p.Result.Results[1].Code != "" || p.Index <= before {
			t.Errorf("a batch with a good op: %+v at %d", p.Result.Results, p.Index)
		}
		c.EnsureSame()
	})
}

// A leader that is cut off refuses no settle, because another leader may have accepted it.
func TestNode_refusedSettlesCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		id := c.Propose(submitOf("mail", 1)).Result.Submitted[0].Task.ID
		old := c.Leader()
		c.Partition(old)
		p, err := old.Propose(context.Background(), command.Complete{Hold: command.Hold{ID: id, WorkerID: "w"}})
		if !clustertest.NothingWritten(err) {
			t.Errorf("a settle on a leader that is cut off: %+v, %v", p.Result, err)
		}
		c.Heal()
	})
}

// A claim in the log that is not answered yet comes before the same worker's settle.
func TestNode_settleBehindClaimInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		id := c.Propose(submitOf("mail", 1)).Result.Submitted[0].Task.ID
		leader := c.Leader()
		<-time.After(10 * time.Second) // its first duties are written by now
		c.Partition(leader)
		claimed, settled := make(chan nodes.Proposed, 1), make(chan nodes.Proposed, 1)
		propose := func(out chan nodes.Proposed, cmd command.Command) {
			p, err := leader.Propose(context.Background(), cmd)
			if err != nil {
				t.Errorf("%T: %v", cmd, err)
			}
			out <- p
		}
		go propose(claimed, claimOf("w", "mail"))
		synctest.Wait()
		go propose(settled, command.Complete{Hold: command.Hold{ID: id, WorkerID: "w"}})
		synctest.Wait()
		c.Heal()
		if p := <-claimed; len(p.Result.Claims) != 1 {
			t.Errorf("claim: %+v", p.Result)
		}
		if p := <-settled; p.Result.Code != "" || p.Result.Task == nil || p.Result.Task.Status != fsm.StatusCompleted {
			t.Errorf("the settle behind it: %+v", p.Result)
		}
		c.EnsureSame()
	})
}
