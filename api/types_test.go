package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// An answer has a bounded number of types; the next answer continues.
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

// A type whose tasks go as they end has rates, and metrics, for a minute.
func TestTypes_NotKept(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	apply(t, node, command.SetDefaults{Set: fsm.TypeRetention, Defaults: fsm.Defaults{RetentionMS: fsm.KeepNone}})
	apply(t, node, command.SetType{Type: "set", Set: fsm.TypeLease, Settings: fsm.TypeSettings{LeaseMS: 1000}})
	for id, name := range []string{"mail", "mail", "set"} {
		submitOne(t, s, `{"params":0,"task_type":"`+name+`"}`)
		apply(t, node, command.ClaimTask{ID: uint64(id) + 1, WorkerID: "w"})
		apply(t, node, command.Complete{Hold: command.Hold{ID: uint64(id) + 1, WorkerID: "w"}})
	}
	const rates = `"submitted_per_s":0.033333,"completed_per_s":0.033333,"failed_per_s":0,`
	metrics := []string{
		`claimq_type_per_second{event="completed",task_type="mail"} 0.033333`,
		`claimq_type_per_second{event="completed",task_type="set"} 0.016666`,
		`claimq_tasks_by_type{status="completed",task_type="mail"} 0`,
	}
	want := func(when string, there bool) {
		t.Helper()
		if got := s.call(t, "GET /api/types/mail", ""); strings.Contains(got.body, rates) != there {
			t.Errorf("%s: the type is %s", when, got.body)
		}
		list := s.call(t, "GET /api/types?name=m", "")
		if matched := map[bool]string{false: `"matched":0,`, true: `"matched":1,`}[there]; strings.Contains(list.body, rates) != there || !strings.Contains(list.body, matched) {
			t.Errorf("%s: the list is %s", when, list.body)
		}
		body := s.call(t, "GET /metrics", "").body
		for _, line := range metrics {
			if strings.Contains(body, line+"\n") != there {
				t.Errorf("%s: there is a line %s: %v", when, line, !there)
			}
		}
		if stats := s.call(t, "GET /api/stats", ""); !strings.Contains(stats.body, `"types":{},`) {
			t.Errorf("%s: stats are %s", when, stats.body)
		}
	}
	want("at once", true)
	node.Advance(65_000)
	want("a minute later", false)
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
