package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// A command is applied once it is on the disks of a majority. Here there is one node without a log, so that the
// example needs no disk; NoRaft is only for that and for measurements, because it loses everything at exit.
func Example() {
	cfg := cluster.DefaultConfig()
	cfg.NodeID, cfg.NoRaft = "n1", true
	ctx := context.Background()
	node, err := cluster.Open(ctx, cfg)
	if err != nil {
		panic(err)
	}
	submit := command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}}
	done, err := node.Propose(ctx, submit)
	for errors.Is(err, nodes.ErrNoLeader) { // the node has just begun
		<-time.After(time.Millisecond)
		done, err = node.Propose(ctx, submit)
	}
	if err != nil {
		panic(err) // nodes.ErrNotLeader: nothing was written; nodes.ErrOutcomeUnknown: it may have been
	}
	id := done.Result.Submitted[0].Task.ID

	// The read sees at least the entry of the submit.
	if _, err := node.ReadLinearizable(ctx, done.Index, func(m *fsm.Machine, _ fsm.Stamp) {
		fmt.Println(m.Get(id).Type, m.Get(id).Status)
	}); err != nil {
		panic(err)
	}
	if err := node.Close(ctx); err != nil {
		panic(err)
	}
	// Output: mail pending
}
