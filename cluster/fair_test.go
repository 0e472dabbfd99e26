package cluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// What a worker has got of a fair type, over failovers and restarts from snapshots, is one task of
// each share key in turn: over any stretch no key has two tasks more than another.
func TestFair_overFailovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys, each = 3, 20
		c := clustertest.New(t, 3)
		c.Propose(command.SetType{Type: "mail", Set: fsm.TypeFair, Settings: fsm.TypeSettings{Fair: true}})
		for key := range keys { // all of one before those of the next
			var tasks []fsm.NewTask
			for range each {
				tasks = append(tasks, fsm.NewTask{Type: "mail", Params: []byte("1"), ShareKey: fmt.Sprint(key)})
			}
			c.Propose(command.Submit{Tasks: tasks})
		}
		var got []string
		for i := range keys * each {
			claims := c.Propose(command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, RequestID: fmt.Sprint("claim-", i)}).Result.Claims
			if len(claims) != 1 {
				t.Fatalf("claim %d got %d tasks", i, len(claims))
			}
			got = append(got, claims[0].Task.Opts().ShareKey)
			switch i % 8 {
			case 3:
				leader := c.Leader()
				if i%3 == 0 {
					if _, err := leader.TakeSnapshot(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				c.Restart(c.Place(leader))
			case 7:
				if _, err := c.Leader().Transfer(patiently(t), c.Followers()[0].NodeID()); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.EnsureSame()
		for from := range got {
			n := map[string]int{}
			for at, key := range got[from:] {
				n[key]++
				for other := range keys {
					if n[key]-n[fmt.Sprint(other)] > 1 {
						t.Fatalf("claims %d to %d: %d of key %s, %d of key %d: %v", from, from+at, n[key], key, n[fmt.Sprint(other)], other, got)
					}
				}
			}
		}
	})
}
