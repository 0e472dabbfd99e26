package strangers

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Each stranger makes the given requests, and returns the answers, including refusals. Only the
// one that resets its connections sometimes gets no answer.
func TestCallers(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.RequestURI() != "/api/tasks?a=b" || r.Header.Get("X-Claimq-Min-Index") != "7" {
			t.Errorf("got %s %s, %v, %v", r.Method, r.URL, r.Header, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Claimq-Index", "12")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	addr := strings.TrimPrefix(server.URL, "http://")
	ground := &Ground{Dir: t.TempDir(), Nodes: []string{addr}}
	t.Cleanup(func() {
		if err := ground.Close(); err != nil {
			t.Error(err)
		}
	})
	callers, err := ground.Callers(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range callers {
		t.Run(c.Name, func(t *testing.T) {
			answered := false
			for range 100 {
				url := server.URL
				if c.URL != "" {
					url = c.URL
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/tasks?a=b", strings.NewReader(`{"ä": "\u0001"}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Claimq-Min-Index", "7")
				resp, err := c.First.RoundTrip(req)
				if errors.Is(err, errReset) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || string(body) != `{"ä": "\u0001"}` || resp.StatusCode != http.StatusConflict || resp.Header.Get("X-Claimq-Index") != "12" {
					t.Fatalf("got %d %v %q, %v", resp.StatusCode, resp.Header, body, err)
				}
				answered = true
				break
			}
			if !answered || asked.Load() == 0 {
				t.Errorf("no answer; %d requests came", asked.Load())
			}
		})
	}
}

// A proxy's own answer is not a node's: nothing listens behind it.
func TestCallers_proxyAlone(t *testing.T) {
	ground := &Ground{Dir: t.TempDir(), Nodes: []string{"127.0.0.1:1"}}
	t.Cleanup(func() { _ = ground.Close() })
	callers, err := ground.Callers(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range callers {
		if c.URL == "" {
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/api/tasks", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.First.RoundTrip(req); !errors.Is(err, errNotTheirs) {
			t.Errorf("%s: got %v, want %v", c.Name, err, errNotTheirs)
		}
	}
}
