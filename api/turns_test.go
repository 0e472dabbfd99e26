package api

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// TestReads_LookInTurns checks that no read looks at much of the state under one lock, and that
// each later look is of a state that is no older.
func TestReads_LookInTurns(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	const types = 1_200
	for first := 0; first < types; first += 600 {
		var tasks []fsm.NewTask
		for i := range 600 {
			tasks = append(tasks, fsm.NewTask{Type: fmt.Sprintf("t%04d", first+i), MaxAttempts: 1})
		}
		apply(t, node, command.Submit{Tasks: tasks})
	}
	looks, newest := 0, uint64(0)
	node.OnRead = func(_ context.Context, index uint64) error {
		if looks++; looks > 1 && index < newest {
			t.Errorf("look %d may be older than %d: %d", looks, newest, index)
		}
		newest = node.Machine.Index()
		return nil
	}
	for path, want := range map[string]int{
		"/api/tasks?label=zz:1":          3,
		"/api/tasks?worker_id=w&limit=1": 3,
		"/api/stats":                     5, // each type is counted, and then read
		"/api/types":                     5,
		"/api/types?name=none":           3,
		"/api/types?limit=1":             3,
	} {
		looks = 0
		s.call(t, "GET "+path, "").good(t, 200)
		if looks-1 != want { // one asks the other nodes, and looks at nothing
			t.Errorf("%s: %d looks, want %d", path, looks-1, want)
		}
	}
}

// TestReads_AtATime checks that long reads look at the state one for each two cores, and one that searches params, while
// the others wait for their turn.
func TestReads_AtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		submitOne(t, s, `{"params":1}`)
		looking, look := make(chan struct{}, 100), make(chan struct{})
		node.OnRead = func(_ context.Context, index uint64) error {
			if index > 0 { // it is its turn, and the other nodes were asked before
				looking <- struct{}{}
				<-look
			}
			return nil
		}
		most, more := max(runtime.GOMAXPROCS(0)/2, 1), 3
		var reads sync.WaitGroup
		begin := func(count int, path string) {
			for range count {
				reads.Go(func() {
					if got := s.call(t, "GET "+path, ""); got.status != 200 {
						t.Errorf("%d %s", got.status, got.body)
					}
				})
			}
			synctest.Wait()
		}
		begin(most+more, "/api/tasks")
		if n, waiting := len(looking), s.core.long.Waiting(); n != most || waiting != more {
			t.Errorf("%d reads look and %d wait, want %d and %d", n, waiting, most, more)
		}
		begin(2, "/api/tasks?contains=ann")
		if n, waiting := len(looking), s.core.searches.Waiting(); n != most+1 || waiting != 1 {
			t.Errorf("%d reads look and %d searches wait, want %d and 1", n, waiting, most+1)
		}
		close(look)
		reads.Wait()
	})
}
