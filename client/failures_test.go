package client

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

func TestClient_Failures(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"failures":[{"group":"b3a41043fcf58a75","task_type":"mail","signature":"timeout after <n> ms","example":"timeout after 12 ms","count":412,`+
		`"first_at":"2026-01-01T00:00:00.000Z","last_at":"2026-01-02T03:04:00.500Z","ids":[17,12],"by_hour":[3,409]}],"groups":3,"looked":500,"failed":812,"next_cursor":"e1.1"}`),
		says(200, `{"success":true,"failures":[],"groups":0,"looked":0,"failed":0,"next_cursor":null}`), refuses(wire.CodeForbidden))
	got, err := c.Failures(t.Context(), FailuresQuery{TaskType: "mail", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := &Failures{
		Groups: []FailureGroup{{
			Group: "b3a41043fcf58a75", TaskType: "mail", Signature: "timeout after <n> ms", Example: "timeout after 12 ms", Count: 412,
			FirstAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), LastAt: time.Date(2026, 1, 2, 3, 4, 0, 5e8, time.UTC), TaskIDs: []string{"17", "12"}, ByHour: []int{3, 409},
		}},
		Count: 3, Looked: 500, Failed: 812, Next: "e1.1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if next, err := c.Failures(t.Context(), FailuresQuery{TaskType: "mail", After: got.Next}); err != nil || next.Next != "" || len(next.Groups) != 0 {
		t.Errorf("the next page: %+v, %v", next, err)
	}
	if _, err := c.Failures(t.Context(), FailuresQuery{}); !errors.Is(err, ErrForbidden) {
		t.Errorf("refused: %v", err)
	}
	for i, want := range []string{"/api/failures?limit=1&task_type=mail", "/api/failures?cursor=e1.1&task_type=mail", "/api/failures"} {
		if got := s.requests()[i].path; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
}

// The filter of a group works in lists and actions.
func TestFilter_ErrorGroup(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"tasks":[],"next_cursor":null}`), says(200, `{"success":true,"matched":2,"done":2}`))
	f := Filter{Status: StatusFailed, ErrorGroup: "b3a41043fcf58a75", LastEndedFirst: true, NewestFirst: true}
	for _, err := range c.Tasks(t.Context(), f) {
		t.Errorf("list: %v", err)
	}
	if _, err := c.Act(t.Context(), Action{Action: ActionRetry, Filter: f}); err != nil {
		t.Errorf("retry: %v", err)
	}
	if got, want := s.requests()[0].path, "/api/tasks?error_group=b3a41043fcf58a75&include=params%2Cresult&limit=200&order=ended&status=failed"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	if got, want := s.requests()[1].body, `{"action":"retry","filter":{"status":"failed","error_group":"b3a41043fcf58a75"}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}
