package api

import (
	"strings"
	"testing"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
)

// A page of an allowed origin may call and read the answers, including refusals; no other page may.
func TestOrigin_Allowed(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, allRoles()...)
	for _, s := range []*Server{leader, follower} {
		s.core.origins = map[string]bool{"https://board.example": true}
		for _, c := range []struct {
			target  string
			headers []string
			status  int
		}{
			{"GET /api/stats", []string{with("reader")}, 200},
			{"POST /api/tasks", []string{with("producer")}, 201},
			{"GET /api/stats", nil, 401},
			{"POST /api/tasks", []string{with("reader")}, 403},
			{"GET /no/such", []string{with("reader")}, 404},
			{"GET /healthz", nil, 200},
		} {
			from := append([]string{"Origin: https://board.example", "Sec-Fetch-Site: cross-site"}, c.headers...)
			got := s.call(t, c.target, goodBodies[c.target], from...)
			h := got.header
			if got.status != c.status || h["Access-Control-Allow-Origin"] != "https://board.example" || !strings.Contains(h["Vary"], "Origin") ||
				!strings.Contains(h["Access-Control-Expose-Headers"], "X-Claimq-Index") || h["Access-Control-Allow-Credentials"] != "" {
				t.Errorf("%s %v: %+v", c.target, c.headers, got)
			}
			for _, other := range [][]string{{"Origin: https://evil.example"}, {"Origin: https://board.example.evil.example"}, {"Origin: http://board.example"}, {"Origin: null"}, {"Sec-Fetch-Site: cross-site"}} {
				got := s.call(t, c.target, goodBodies[c.target], append(other, c.headers...)...)
				got.refused(t, wire.CodeForbidden)
				if got.header["Access-Control-Allow-Origin"] != "" || got.header["Vary"] != "Origin" {
					t.Errorf("%s from %v: %+v", c.target, other, got)
				}
			}
		}
	}
}

// A browser's preflight has no key.
func TestOrigin_Preflight(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(allRoles()...), func(c *Config) { c.AllowedOrigins = []string{"https://board.example", "http://localhost:8080"} })
	got := s.call(t, "OPTIONS /api/tasks/1", "", "Origin: http://localhost:8080", "Access-Control-Request-Method: PATCH", "Access-Control-Request-Headers: x-api-key", "Sec-Fetch-Site: same-site")
	h := got.header
	if got.status != 204 || h["Access-Control-Allow-Origin"] != "http://localhost:8080" || h["Access-Control-Allow-Methods"] != "GET, HEAD, PATCH, DELETE, OPTIONS" ||
		!strings.Contains(h["Access-Control-Allow-Headers"], "X-API-Key") || !strings.Contains(h["Access-Control-Allow-Headers"], "Authorization") || h["Access-Control-Max-Age"] != "600" {
		t.Errorf("preflight: %+v", got)
	}
	s.call(t, "OPTIONS /api/tasks/1", "", "Origin: https://evil.example", "Access-Control-Request-Method: PATCH").refused(t, wire.CodeForbidden)
	if h := s.call(t, "OPTIONS /api/tasks/1", "").header; h["Access-Control-Allow-Methods"] != "" || h["Allow"] == "" || h["Vary"] != "Origin" {
		t.Errorf("OPTIONS of no page: %v", h)
	}
}

// Invalid origins are refused at the start.
func TestOrigin_Malformed(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"", "*", "board.example", "https://", "https://board.example/", "https://board.example/app", "ftp://board.example", "https://u@board.example", "https://board.example?x"} {
		if _, err := New(Config{Node: nodetest.New(), AllowedOrigins: []string{"https://a.example", origin}}); err == nil || !strings.Contains(err.Error(), "allowed_origins[1]") {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
