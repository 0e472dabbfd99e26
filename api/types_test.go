package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// An answer has so many types at most; the next one goes on.
func TestTypes_Pages(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for first := range 2 {
		tasks := make([]fsm.NewTask, 501)
		for i := range tasks {
			tasks[i].Type = fmt.Sprintf("t%04d", first*501+i)
		}
		apply(t, node, command.Submit{Tasks: tasks})
	}
	ask := func(query string) (types wire.Types) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.call(t, "GET /api/types"+query, "").body), &types); err != nil || !types.Success {
			t.Fatalf("%+v, %v", types, err)
		}
		return types
	}
	first := ask("")
	if len(first.Types) != 1000 || first.Total != 1002 || first.Matched != 1002 || first.Next != "t0999" {
		t.Errorf("%d types of %d, %d match, next %q", len(first.Types), first.Total, first.Matched, first.Next)
	}
	last := ask("?after=" + first.Next)
	if len(last.Types) != 2 || last.Types[0].TaskType != "t1000" || last.Total != 1002 || last.Matched != 2 || last.Next != "" {
		t.Errorf("%d types of %d, %d match, next %q", len(last.Types), last.Total, last.Matched, last.Next)
	}
	if most := ask("?order=pending"); len(most.Types) != 1000 || most.Next != "" {
		t.Errorf("in another order %d types, next %q", len(most.Types), most.Next)
	}
}

// TestStats_typesLeftOut has one type more than an answer shows.
func TestStats_typesLeftOut(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	tasks := make([]fsm.NewTask, statsTypesMax+1)
	for i := range tasks {
		tasks[i].Type = fmt.Sprintf("t%05d", i)
	}
	apply(t, node, command.Submit{Tasks: tasks})
	var stats wire.Stats
	if err := json.Unmarshal([]byte(s.call(t, "GET /api/stats", "").body), &stats); err != nil {
		t.Fatal(err)
	}
	if len(stats.Types) != statsTypesMax || stats.TypesLeftOut != 1 || stats.Types["t10000"] != nil || stats.Counts["pending"] != statsTypesMax+1 {
		t.Errorf("%d types, %d left out, %v", len(stats.Types), stats.TypesLeftOut, stats.Counts)
	}
}
