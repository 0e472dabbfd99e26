package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// submit returns a submit of a task that is pending as soon as its lease is over.
func submit(key string) command.Submit {
	return command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`{}`), Key: key, MaxAttempts: 0, Backoff: &fsm.Backoff{MaxMS: 1}}}}
}

func claim(worker string, lease time.Duration) command.ClaimNext {
	return command.ClaimNext{WorkerID: worker, Limit: 1, LeaseMS: lease.Milliseconds()}
}

// A task goes through its life, and every node ends up with the same state.
func TestNode_life(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		p := c.Propose(submit("a"))
		id := p.Result.Submitted[0].Task.ID
		claimed := c.Propose(claim("w", time.Minute))
		if len(claimed.Result.Claims) != 1 || claimed.Result.Claims[0].Task.ID != id {
			t.Fatalf("claimed %+v, want task %d", claimed.Result, id)
		}
		done := c.Propose(command.Complete{Hold: command.Hold{ID: id, WorkerID: "w", Token: claimed.Result.Claims[0].Token}})
		if done.Result.Code != "" {
			t.Fatalf("complete: %s", done.Result.Code)
		}
		var status fsm.Status
		index, err := c.Leader().ReadLinearizable(context.Background(), done.Index, func(m *fsm.Machine, _ fsm.Stamp) { status = m.Get(id).Status })
		if err != nil || status != fsm.StatusCompleted || index < done.Index {
			t.Fatalf("read: %v at %d, %v; want completed at %d or later", status, index, err, done.Index)
		}
		c.EnsureSame()
	})
}
