package api

import (
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

func TestServer_GuardHost(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	open, _ := setup(t, func(c *Config) { c.Insecure = true })
	for host, want := range map[string][2]bool{ // on loopback; with Insecure
		"127.0.0.1":          {true, true},
		"127.0.0.1:7400":     {true, true},
		"127.8.9.1:1":        {true, true},
		"localhost":          {true, true},
		"LocalHost:7400":     {true, true},
		"localhost.:7400":    {true, true},
		"n1.localhost:7400":  {true, true},
		"[::1]:7400":         {true, true},
		"[::1]":              {true, true},
		"queue.example":      {true, true},
		"QUEUE.example:9":    {true, true},
		"10.0.0.7:7400":      {false, true},
		"[fe80::1]:7400":     {false, true},
		"0.0.0.0:7400":       {false, true},
		"evil.example":       {false, false},
		"evil.example:7400":  {false, false},
		"localhost.evil.com": {false, false},
		"127.0.0.1.evil.com": {false, false},
		"127.0.0.1:x":        {false, false},
		"127.1":              {false, false},
		"evil@127.0.0.1":     {false, false},
		"[::1":               {false, false},
	} {
		for i, server := range []*Server{s, open} {
			got := server.call(t, "GET /api/stats", "", "Host: "+host)
			if want[i] {
				got.good(t, 200)
				continue
			}
			f := got.refused(t, wire.CodeForbidden)
			if f["field"] != "Host" || !strings.Contains(f["message"].(string), "--http-advertise") {
				t.Errorf("Host %s: %s", host, got.body)
			}
		}
		// Probes use any address.
		if got := s.call(t, "GET /readyz", "", "Host: "+host); got.status != 200 {
			t.Errorf("readyz for Host %s: %d", host, got.status)
		}
	}
}

func TestServer_GuardOrigin(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for header, allowed := range map[string]bool{
		"Sec-Fetch-Site: same-origin":    true,
		"Sec-Fetch-Site: none":           true,
		"Sec-Fetch-Site: same-site":      false,
		"Sec-Fetch-Site: cross-site":     false,
		"Origin: http://127.0.0.1:7400":  true,
		"Origin: https://127.0.0.1:7400": true,
		"Origin: http://127.0.0.1:7401":  false,
		"Origin: http://127.0.0.1":       false,
		"Origin: http://evil.example":    false,
		"Origin: null":                   false,
		"Origin: file://127.0.0.1:7400":  false,
	} {
		for _, target := range []string{"GET /api/stats", "POST /api/tasks", "GET /metrics", "OPTIONS /api/tasks"} {
			got := s.call(t, target, goodBodies[target], header)
			if allowed && got.status >= 300 {
				t.Errorf("%s with %s: %d %s", target, header, got.status, got.body)
			}
			if !allowed {
				f := got.refused(t, wire.CodeForbidden)
				if name, _, _ := strings.Cut(header, ":"); f["field"] != name {
					t.Errorf("%s with %s: %s", target, header, got.body)
				}
			}
		}
	}
}

// TestServer_GuardForwarded checks that only the node that a request reaches first checks its origin.
func TestServer_GuardForwarded(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	do(t, s.ForwardHandler(), "GET /api/stats", "", "Host: peer", "Sec-Fetch-Site: cross-site").good(t, 200)
}

func TestServer_Methods(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for path, allow := range map[string]string{
		"/api/tasks": "GET, HEAD, POST, OPTIONS", "/api/tasks/claim": "POST, OPTIONS", "/api/tasks/1": "GET, HEAD, PATCH, DELETE, OPTIONS",
		"/api/tasks/1/cancel": "POST, OPTIONS", "/api/batch": "POST, OPTIONS", "/api/types": "GET, HEAD, OPTIONS", "/api/types/a": "GET, HEAD, PATCH, OPTIONS",
		"/api/cluster/upgrade":  "POST, OPTIONS",
		"/api/tasks/1/complete": "POST, OPTIONS", "/api/tasks/by-key/k": "GET, HEAD, OPTIONS", "/metrics": "GET, HEAD, OPTIONS",
	} {
		got := s.call(t, "OPTIONS "+path, "")
		if got.status != 204 || got.header["Allow"] != allow || got.body != "" {
			t.Errorf("OPTIONS %s: %d %q %s", path, got.status, got.header["Allow"], got.body)
		}
		got = s.call(t, "PUT "+path, "{}")
		got.refused(t, wire.CodeMethodNotAllowed)
		if got.header["Allow"] != allow {
			t.Errorf("PUT %s: Allow %q", path, got.header["Allow"])
		}
	}
}

func TestServer_RequestID(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for id, kept := range map[string]bool{
		"r": true, "a b~!\"": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "": false, "é": false, "a\tb": false, "a\x7f": false,
	} {
		got := s.call(t, "GET /api/tasks/1", "", "X-Request-ID: "+id)
		f := got.refused(t, wire.CodeTaskNotFound) // the header is the body's
		if (f["request_id"] == id) != kept {
			t.Errorf("%q became %q", id, f["request_id"])
		}
		if made := f["request_id"].(string); !kept && (len(made) != 36 || made[14] != '7' || !strings.Contains("89ab", made[19:20])) {
			t.Errorf("made %q, no UUID of version 7", made)
		}
	}
}

func TestServer_MinIndex(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for _, v := range []string{"x", "-1", "+1", "01", "1.5", "18446744073709551616"} {
		if f := s.call(t, "GET /api/stats", "", "X-Claimq-Min-Index: "+v).refused(t, wire.CodeInvalidRequest); f["field"] != "X-Claimq-Min-Index" {
			t.Errorf("%s: %v", v, f)
		}
	}
}

func TestServer_Health(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	if got := s.call(t, "GET /healthz", ""); got.status != 200 || got.body != `{"success":true,"status":"alive","node_id":"n1","version":"v0.0.1"}` {
		t.Errorf("healthz: %d %s", got.status, got.body)
	}
	if got := s.call(t, "GET /readyz?x=1", ""); got.status != 200 || got.body != `{"success":true,"status":"ready","node_id":"n1","version":"v0.0.1"}` {
		t.Errorf("readyz: %d %s", got.status, got.body)
	}
	node.ReadyErr = errNotCaughtUp
	checkRefusal(t, s.call(t, "GET /readyz", ""), wire.CodeNoLeader, "The node is not ready: 12 entries behind", "Wait until the node knows a leader and has caught up with it", "")
	if got := s.call(t, "GET /healthz", ""); got.status != 200 {
		t.Errorf("healthz while not ready: %d", got.status)
	}
}
