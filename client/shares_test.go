package client

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Settings of a share are sent as they are, those that are not set as null or not at all.
func TestClient_SetShare(t *testing.T) {
	t.Parallel()
	const answer = `{"success":true,"share":{"share_key":"a/b","pending":3,"claimed":2,"oldest_wait_ms":1500,"state":"limited","opens_at":null,"paused":true,"max_claimed":2,"weight":300,"rate_limit":0.5}}`
	for _, test := range []struct {
		settings ShareSettings
		want     string
	}{
		{ShareSettings{}, `{"paused":false,"max_claimed":null,"rate_limit":null}`},
		{ShareSettings{Paused: true, MaxClaimed: 2, Weight: 300, RateLimit: 0.1 + 0.2}, `{"paused":true,"max_claimed":2,"weight":300,"rate_limit":0.3}`},
	} {
		s, c := talk(t, says(200, answer))
		got, err := c.SetShare(t.Context(), "mail", "a/b", test.settings)
		if want := (Share{"a/b", 3, 2, 1500 * time.Millisecond, "limited", time.Time{}, ShareSettings{true, 2, 300, 0.5}}); err != nil || *got != want {
			t.Errorf("got %+v, %v", got, err)
		}
		if r := s.requests()[0]; r.method != "PUT" || r.path != "/api/types/mail/shares/a%2Fb" || r.body != test.want {
			t.Errorf("sent %s %s %s", r.method, r.path, r.body)
		}
	}
	s, c := talk(t, says(200, answer))
	if got, err := c.DeleteShare(t.Context(), "mail", "a/b"); err != nil || got.ShareKey != "a/b" || s.requests()[0].method != "DELETE" {
		t.Errorf("got %+v, %v by %+v", got, err, s.requests()[0])
	}
	for _, settings := range []ShareSettings{{MaxClaimed: -1}, {Weight: 10_001}, {RateLimit: math.NaN()}} {
		if _, err := c.SetShare(t.Context(), "mail", "a", settings); err == nil {
			t.Errorf("%+v was sent", settings)
		}
	}
}

// A page of shares is asked for as the query says, and has what leads to the next one.
func TestClient_Shares(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"shares":[{"share_key":"a","weight":100}],"next":"a"}`))
	got, err := c.Shares(t.Context(), "mail", SharesQuery{ByPending: true, WithSettings: true, Limit: 7, After: "x/y"})
	if err != nil || len(got.Shares) != 1 || got.Shares[0].ShareKey != "a" || got.Next != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	if r := s.requests()[0]; r.path != "/api/types/mail/shares?after=x%2Fy&limit=7&order=pending&settings=true" {
		t.Errorf("sent %s", r.path)
	}
}

// Of several wrong settings the same one is always named.
func TestClient_SetType_namesTheFirst(t *testing.T) {
	t.Parallel()
	_, c := talk(t, says(200, okAnswer))
	for range 50 {
		if _, err := c.SetType(t.Context(), "mail", TypeSettings{RateLimit: new(math.NaN()), RateLimitPerKey: new(math.NaN())}); err == nil || !strings.Contains(err.Error(), "rate_limit is NaN") {
			t.Fatalf("got %v", err)
		}
	}
}
