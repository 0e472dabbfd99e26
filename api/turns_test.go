package api

import (
	"context"
	"fmt"
	"testing"

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
