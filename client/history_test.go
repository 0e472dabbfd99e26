package client

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

func TestClient_History(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"task_type":"mail","interval_ms":60000,"since":"2026-01-01T00:00:00.000Z","from":"2026-01-01T01:00:00.000Z","to":"2026-01-01T01:02:30.000Z","kept":true,`+
		`"submitted":[120,0,7],"completed":[118,0,6],"failed":[2,0,5],"pending":[40,41,4],"claimed":[12,0,3],"oldest_pending_age_ms":[1200,61200,0],`+
		`"waited_p50_ms":[40,null,null],"waited_p99_ms":[960,null,null],"ran_p50_ms":[207,null,8],"ran_p99_ms":[832,null,9]}`),
		says(200, `{"success":true,"task_type":null,"interval_ms":60000,"since":null,"from":null,"to":null,"kept":true,"submitted":[],"completed":[],"failed":[],"pending":[],"claimed":[],`+
			`"oldest_pending_age_ms":[],"waited_p50_ms":[],"waited_p99_ms":[],"ran_p50_ms":[],"ran_p99_ms":[]}`),
		says(200, `{"success":true,"interval_ms":60000,"from":"2026-01-01T01:00:00.000Z","submitted":[1,2],"completed":[1]}`),
		says(200, `{"success":true,"interval_ms":60000,"from":null,"submitted":[1],"completed":[1],"failed":[1],"pending":[1],"claimed":[1],"oldest_pending_age_ms":[1],`+
			`"waited_p50_ms":[1],"waited_p99_ms":[1],"ran_p50_ms":[1],"ran_p99_ms":[1]}`),
		refuses(wire.CodeForbidden))
	got, err := c.History(t.Context(), HistoryQuery{TaskType: "mail", Last: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	want := &History{
		Interval: time.Minute, Since: begun.Add(-time.Hour), To: begun.Add(150 * time.Second), Kept: true, Points: []HistoryPoint{
			{
				From: begun, Submitted: 120, Completed: 118, Failed: 2, Pending: 40, Claimed: 12, OldestPendingAge: 1200 * time.Millisecond,
				Waited: &Quantiles{40 * time.Millisecond, 960 * time.Millisecond}, Ran: &Quantiles{207 * time.Millisecond, 832 * time.Millisecond},
			},
			{From: begun.Add(time.Minute), Pending: 41, OldestPendingAge: 61200 * time.Millisecond},
			{
				From: begun.Add(2 * time.Minute), Submitted: 7, Completed: 6, Failed: 5, Pending: 4, Claimed: 3,
				Ran: &Quantiles{8 * time.Millisecond, 9 * time.Millisecond},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := c.History(t.Context(), HistoryQuery{}); err != nil || len(got.Points) != 0 || !got.Since.IsZero() || !got.Kept {
		t.Errorf("of one that has not begun: %+v, %v", got, err)
	}
	for _, what := range []string{"arrays of two lengths", "numbers of no time"} {
		if got, err := c.History(t.Context(), HistoryQuery{}); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if _, err := c.History(t.Context(), HistoryQuery{}); !errors.Is(err, ErrForbidden) {
		t.Errorf("refused: %v", err)
	}
	for i, want := range []string{"/api/history?minutes=120&task_type=mail", "/api/history"} {
		if got := s.requests()[i].path; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
}
