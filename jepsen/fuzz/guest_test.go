package fuzz

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// The guest reports calls that are not answered during a siege, and a node's memory above
// its bound.
func TestGuest(t *testing.T) {
	t.Parallel()
	well := map[string]string{
		"/api/stats": "{}", "/api/tasks": "{}", "/api/tasks/claim": `{"task":{"id":7,"claim_token":9}}`,
		"/api/tasks/7/complete": "{}", "/metrics": "process_resident_memory_bytes 1048576\n",
	}
	for name, tc := range map[string]struct{ path, answer, want string }{
		"all is well":      {},
		"no claim":         {"/api/tasks/claim", `{"code":"overloaded"}`, "the guest claims at node 1: refused"},
		"no figures":       {"/metrics", "", "looks at the memory at node 1: refused"},
		"much more memory": {"/metrics", "process_resident_memory_bytes 1048576000\n", "the node's memory is 1000 MB, it may be 384"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, ok := well[r.URL.Path]
				if r.URL.Path == tc.path {
					answer = tc.answer
				}
				if !ok || r.Header.Get("X-API-Key") != "k" || answer == "" || strings.Contains(answer, "overloaded") {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer node.Close()
			r := &run{cfg: Config{Nodes: []Node{{Node: procs.At(strings.TrimPrefix(node.URL, "http://"), "k")}}, Key: "k", ResidentMaxMB: 384}}
			g := newGuest(r)
			g.begin("a siege")
			g.ask(t.Context())
			said := r.report.Found(nil)
			if tc.want == "" && (said != "" || g.seen.Calls != 6 || g.seen.ResidentMB != 1) || !strings.Contains(said, tc.want) {
				t.Errorf("it said %q, and saw %+v", said, g.seen)
			}
		})
	}
}
