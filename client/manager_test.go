package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

func TestTaskManager_settlesWithTheClaimItMade(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, claimedTask), says(200, okAnswer))
	if err := c.Claim(t.Context(), "17", "w1"); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0]; got.path != "/api/tasks/17/claim" || got.field(t, "worker_id") != "w1" || got.field(t, "claim_request_id") == nil {
		t.Errorf("claim sent %s %s", got.path, got.body)
	}
	for range 2 { // completing twice returns nil
		if err := c.Complete(t.Context(), "17", []byte(`"done"`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Fail(t.Context(), "17", errors.New("late")); err != nil {
		t.Fatal(err)
	}
	got := s.requests()[1:]
	for i, want := range []string{
		`/api/tasks/17/complete {"worker_id":"w1","claim_token":5,"result":"done"}`,
		`/api/tasks/17/complete {"worker_id":"w1","claim_token":5,"result":"done"}`,
		`/api/tasks/17/fail {"worker_id":"w1","claim_token":5,"error":"late"}`,
	} {
		if sent := got[i].path + " " + got[i].body; sent != want {
			t.Errorf("sent %s\nwant %s", sent, want)
		}
	}
}

func TestTaskManager_settlesWithAClaimOfClaimNext(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, okAnswer))
	if err := cl.c.Complete(t.Context(), "17", nil); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[1]; got.field(t, "claim_token") != 5.0 {
		t.Errorf("sent %s", got.body)
	}
}

// Without a claim the server decides which error is returned, and nothing changes.
func TestTaskManager_withoutAClaimAsksAsNobody(t *testing.T) {
	t.Parallel()
	for code, want := range map[wire.Code]error{
		wire.CodeTaskNotFound: ErrTaskNotFound, wire.CodeTaskCompleted: ErrTaskCompleted,
		wire.CodeTaskNotClaimed: ErrTaskNotClaimed, wire.CodeWrongWorker: ErrWrongWorker,
	} {
		s, c := talk(t, refuses(code))
		if err := c.Complete(t.Context(), "17", nil); !errors.Is(err, want) {
			t.Errorf("complete: got %v, want %v", err, want)
		}
		if err := c.Fail(t.Context(), "17", nil); !errors.Is(err, want) {
			t.Errorf("fail: got %v, want %v", err, want)
		}
		a, b := s.requests()[0], s.requests()[1]
		if a.field(t, "claim_token") != nil || !strings.HasPrefix(a.field(t, "worker_id").(string), "nobody-") ||
			a.field(t, "worker_id") == b.field(t, "worker_id") {
			t.Errorf("sent %s and %s", a.body, b.body)
		}
	}
}

func TestTaskManager_refusesWhatIsNoID(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, okAnswer))
	ctx, id := t.Context(), "17/../../x"
	_, getErr := c.Get(ctx, id)
	for name, err := range map[string]error{
		"claim": c.Claim(ctx, id, "w"), "complete": c.Complete(ctx, id, nil), "fail": c.Fail(ctx, id, nil),
		"retry": c.Retry(ctx, id), "get": getErr, "delete": c.Delete(ctx, id),
	} {
		if !errors.Is(err, ErrTaskNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestTaskManager_GetByIdempotencyKey(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, pendingTask))
	for key, want := range map[string]string{
		"a/b?c%d é": "/api/tasks/by-key/a%2Fb%3Fc%25d%20%C3%A9", "..": "/api/tasks/by-key/..", ".": "/api/tasks/by-key/.",
	} {
		task, err := c.GetByIdempotencyKey(t.Context(), key)
		if err != nil || task.ID != "17" {
			t.Errorf("%q: got %v, %v", key, task, err)
		}
		got := s.requests()
		if last := got[len(got)-1].path; last != want {
			t.Errorf("%q: sent %s, want %s", key, last, want)
		}
	}
	if _, err := c.GetByIdempotencyKey(t.Context(), ""); !errors.Is(err, ErrTaskNotFound) {
		t.Errorf("an empty key: %v", err)
	}
}

func TestTaskManager_List_walksThePages(t *testing.T) {
	t.Parallel()
	s, c := talk(t,
		says(200, `{"success":true,"tasks":[{"id":1},{"id":2}],"next_cursor":"c+1"}`),
		says(200, `{"success":true,"tasks":[],"next_cursor":"c2"}`),
		says(200, `{"success":true,"tasks":[{"id":3}],"next_cursor":null}`))
	tasks, err := c.List(t.Context(), StatusFailed)
	if err != nil || len(tasks) != 3 || tasks[2].ID != "3" {
		t.Fatalf("got %v, %v", tasks, err)
	}
	for i, want := range []string{
		"/api/tasks?include=params%2Cresult&limit=200&status=failed",
		"/api/tasks?cursor=c%2B1&include=params%2Cresult&limit=200&status=failed",
		"/api/tasks?cursor=c2&include=params%2Cresult&limit=200&status=failed",
	} {
		if got := s.requests()[i].path; got != want {
			t.Errorf("sent %s\nwant %s", got, want)
		}
	}
}

func TestClient_Tasks(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"tasks":[{"id":1},{"id":2}],"next_cursor":"c"}`), says(401, `{"success":false,"error":"no","code":"unauthorized"}`))
	f := Filter{
		TaskType: "mail", WorkerID: "w", NewestFirst: true,
		CreatedAfter:  time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600)),
		CreatedBefore: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC),
	}
	for task := range c.Tasks(t.Context(), f) {
		if task.ID != "1" {
			t.Errorf("got %v", task)
		}
		break // no further page is asked for
	}
	if got := s.requests(); len(got) != 1 || got[0].path != "/api/tasks?created_after=2026-01-02T02%3A04%3A05.006Z"+
		"&created_before=2026-01-03T00%3A00%3A00.000Z&include=params%2Cresult&limit=200&order=desc&task_type=mail&worker_id=w" {
		t.Errorf("got %+v", got)
	}
	var errs []error
	for _, err := range c.Tasks(t.Context(), f) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], ErrUnauthorized) {
		t.Errorf("got %v", errs)
	}
}

func TestClient_Do_returnsTheServersBytes(t *testing.T) {
	t.Parallel()
	body := `{ "success": true,  "index": 7 }`
	s, c := talk(t, says(200, body))
	got, err := c.Do(t.Context(), Request{Method: "GET", Path: "/api/stats"})
	if err != nil || string(got) != body || s.requests()[0].path != "/api/stats" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestClient_Close(t *testing.T) {
	t.Parallel()
	t.Run("ends what is under way", func(t *testing.T) {
		t.Parallel()
		started := make(chan struct{})
		_, c := talk(t, func(_ http.ResponseWriter, r *http.Request) {
			close(started)
			<-r.Context().Done()
		})
		result := make(chan error)
		go func() { result <- c.Retry(context.Background(), "17") }()
		<-started
		c.Close()
		if err := <-result; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses what comes later", func(t *testing.T) {
		t.Parallel()
		s, c := talk(t, says(200, okAnswer))
		for range 2 {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Get(t.Context(), "17"); !errors.Is(err, ErrClosed) {
			t.Errorf("get: %v", err)
		}
		if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w"}); !errors.Is(err, ErrClosed) {
			t.Errorf("claim: %v", err)
		}
		if n := len(s.requests()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}
