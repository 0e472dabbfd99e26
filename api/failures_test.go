package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/errorgroup"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// failuresOf decodes the answer to GET /api/failures.
func failuresOf(t testing.TB, a answer) wire.Failures {
	t.Helper()
	a.good(t, 200)
	var out wire.Failures
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

// failOne submits a task of the type and fails it.
func failOne(t testing.TB, s *Server, node *nodetest.Node, taskType, failure string) {
	t.Helper()
	submitOne(t, s, fmt.Sprintf(`{"params":1,"task_type":%q}`, taskType))
	id, token := claimOne(t, s, "w")
	node.Advance(1000)
	s.call(t, "POST /api/tasks/"+id+"/fail", fmt.Sprintf(`{"worker_id":"w","claim_token":%s,"error":%q,"permanent":true}`, token, failure)).good(t, 200)
}

func TestServer_Failures(t *testing.T) {
	t.Parallel()
	follower, s, _, node := setupPair(t)
	if got := s.call(t, "GET /api/failures", "").body; got != `{"success":true,"failures":[],"groups":0,"looked":0,"failed":0,"next_cursor":null}` {
		t.Errorf("without tasks: %s", got)
	}
	failOne(t, s, node, "mail", "timeout after 12 ms")
	failOne(t, s, node, "post", "timeout after 3 ms")
	failOne(t, s, node, "mail", "no \"luck\"")
	failOne(t, s, node, "mail", "timeout after 3000 ms\nat mail.go:7")
	timeouts := `{"group":"b3a41043fcf58a75","task_type":"mail","signature":"timeout after <n> ms","example":"timeout after 3000 ms\nat mail.go:7","count":2,` +
		`"first_at":"2026-03-01T12:00:01.000Z","last_at":"2026-03-01T12:00:04.000Z","ids":[4,1],"by_hour":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2]}`
	want := `{"success":true,"failures":[` + timeouts + `],"groups":3,"looked":4,"failed":4,"next_cursor":null}`
	if got := s.call(t, "GET /api/failures?limit=1", "").body; got != want {
		t.Errorf("the largest group:\n got %s\nwant %s", got, want)
	}
	all := failuresOf(t, s.call(t, "GET /api/failures", ""))
	if d := cmp.Diff(all, failuresOf(t, follower.call(t, "GET /api/failures", ""))); d != "" || len(all.Failures) != 3 {
		t.Errorf("%d groups; through a follower:\n%s", len(all.Failures), d)
	}
	mail := failuresOf(t, s.call(t, "GET /api/failures?task_type=mail", ""))
	if mail.Groups != 2 || mail.Looked != 3 || mail.Failed != 3 || mail.Failures[0].Count != 2 {
		t.Errorf("of one type: %+v", mail)
	}
	if none := failuresOf(t, s.call(t, "GET /api/failures?task_type=none", "")); none.Groups+none.Looked+int(none.Failed) != 0 {
		t.Errorf("of a type without tasks: %+v", none)
	}

	for query, want := range map[string]string{
		"?error_group=b3a41043fcf58a75":                                                    "1 4",
		"?error_group=b3a41043fcf58a75&task_type=post":                                     "",
		"?error_group=b3a41043fcf58a75&status=pending":                                     "",
		"?status=failed&order=ended":                                                       "4 3 2 1",
		"?status=failed&order=ended&task_type=mail":                                        "4 3 1",
		"?status=failed&order=ended&error_group=b3a41043fcf58a75":                          "4 1",
		"?error_group=" + all.Failures[1].Group + "&task_type=" + all.Failures[1].TaskType: fmt.Sprint(all.Failures[1].IDs[0]),
	} {
		if got := ids(s.call(t, "GET /api/tasks"+query, "").good(t, 200).Tasks); got != want {
			t.Errorf("%s: tasks %s, want %s", query, got, want)
		}
	}
}

// An action on a group leaves alone tasks that have left the group when it is applied.
func TestServer_ActOnErrorGroup(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	failOne(t, s, node, "mail", "timeout after 12 ms")
	failOne(t, s, node, "mail", "no luck")
	failOne(t, s, node, "mail", "timeout after 13 ms")
	failOne(t, s, node, "mail", "timeout after 14 ms")
	act := func(more string) (matched, done int64) {
		t.Helper()
		var acted wire.Acted
		body := `{"action":"retry","filter":{"error_group":"b3a41043fcf58a75"},"add_attempts":1` + more + `}`
		if err := json.Unmarshal([]byte(s.call(t, "POST /api/tasks/actions", body).body), &acted); err != nil {
			t.Fatal(err)
		}
		return acted.Matched, acted.Done
	}
	if matched, done := act(`,"dry_run":true`); matched != 3 || done != 0 {
		t.Errorf("a dry run: %d match, %d done", matched, done)
	}
	s.call(t, "POST /api/tasks/actions", `{"action":"retry","filter":{"error_group":"b3a41043fcf58a75"},"expect":1}`).refused(t, wire.CodeCountMismatch)
	node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		node.OnPropose = nil
		node.Advance(1)
		apply(t, node, command.Retry{ID: 1, AddAttempts: 1}) // before the action reaches them
		apply(t, node, command.Retry{ID: 3, AddAttempts: 1})
		c := apply(t, node, command.ClaimTask{ID: 3, WorkerID: "w"}).Result.Claims[0]
		apply(t, node, command.Fail{Hold: command.Hold{ID: 3, WorkerID: "w", Token: c.Token}, Error: "no luck", Permanent: true})
		return node.Apply(cmd)
	}
	if matched, done := act(`,"expect":3`); matched != 3 || done != 1 {
		t.Errorf("%d match, %d done", matched, done)
	}
	if got := ids(s.call(t, "GET /api/tasks?status=failed", "").good(t, 200).Tasks); got != "2 3" {
		t.Errorf("tasks %s are failed, want 2 and 3", got)
	}
}

// Tasks that failed before the newest 10,000 are on the next page, and no task is on two pages.
func TestServer_FailuresPages(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	const all = 10_500
	failMany(t, node, all)
	first := failuresOf(t, s.call(t, "GET /api/failures", ""))
	if first.Looked != 10_000 || first.Failed != all || first.NextCursor == "" || first.Groups != 2 {
		t.Fatalf("the first page: %+v", first)
	}
	second := failuresOf(t, s.call(t, "GET /api/failures?cursor="+first.NextCursor, ""))
	if second.Looked != all-10_000 || second.NextCursor != "" || second.Failures[0].Group != first.Failures[0].Group {
		t.Errorf("the second page: %+v", second)
	}
	if f, s := first.Failures[0], second.Failures[0]; !s.LastAt.Before(f.FirstAt.Add(time.Millisecond)) || f.Count+s.Count != all-all/500 {
		t.Errorf("%d from %v on, before them %d to %v", f.Count, f.FirstAt, s.Count, s.LastAt)
	}
	if b := failuresOf(t, s.call(t, "GET /api/failures?task_type=b", "")); b.Looked != all/500 || b.NextCursor != "" {
		t.Errorf("of the other type: %+v", b)
	}
}

// failMany makes all tasks fail; the first of each 500 has type b, the others type a.
func failMany(t *testing.T, node *nodetest.Node, all int) {
	t.Helper()
	for first := 0; first < all; first += 500 {
		tasks := make([]fsm.NewTask, 500)
		for i := range tasks {
			tasks[i] = fsm.NewTask{Type: "a", MaxAttempts: 1}
		}
		tasks[0].Type = "b"
		apply(t, node, command.Submit{Tasks: tasks})
		for _, c := range apply(t, node, command.ClaimNext{WorkerID: "w", Limit: 500}).Result.Claims {
			apply(t, node, command.Fail{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w", Token: c.Token}, Error: fmt.Sprint("error ", c.Task.ID)})
		}
		node.Advance(1)
	}
}

// A page of a group examines as many tasks as any other, but not under one lock, and neither do actions on a group.
func TestServer_ListGroup(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	const all = 10_500
	failMany(t, node, all)
	group := errorgroup.Of("b", "error 1").String()
	reads, newest := 0, uint64(0)
	node.OnRead = func(_ context.Context, index uint64) error {
		if reads++; reads > 1 && index < newest {
			t.Errorf("look %d may be older than %d: %d", reads, newest, index)
		}
		newest = node.Machine.Index()
		return nil
	}
	path := "GET /api/tasks?status=failed&order=ended&limit=30&error_group=" + group
	first := s.call(t, path, "").good(t, 200)
	if len(first.Tasks) != 20 || first.NextCursor == "" || reads != 1+10_000/listLook {
		t.Errorf("%d tasks in %d looks, next %q", len(first.Tasks), reads, first.NextCursor)
	}
	reads = 0
	last := s.call(t, path+"&cursor="+first.NextCursor, "").good(t, 200)
	if len(last.Tasks) != 1 || last.NextCursor != "" || reads != 2 {
		t.Errorf("%d tasks in %d looks, next %q", len(last.Tasks), reads, last.NextCursor)
	}
	reads = 0
	var acted wire.Acted
	if err := json.Unmarshal([]byte(s.call(t, "POST /api/tasks/actions", `{"action":"retry","filter":{"error_group":"`+group+`"},"dry_run":true}`).body), &acted); err != nil || acted.Matched != 21 || reads != all/listLook {
		t.Errorf("an action: %+v in %d looks, %v", acted, reads, err)
	}
}

// apply applies the command to the node.
func apply(t testing.TB, node *nodetest.Node, cmd command.Command) nodes.Proposed {
	t.Helper()
	p, err := node.Apply(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
