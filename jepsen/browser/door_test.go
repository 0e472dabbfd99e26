package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// door is a proxy between a browser and a node: it adds a path and counts
// requests.
type door struct {
	URL    string
	prefix string

	mu      sync.Mutex        // guards the fields below
	page    string            // the version of the node's page to report; "": the real one
	refused map[string]string // paths answered with this and status 503 instead of by the node
	said    map[string]string // the same with status 200
	asked   map[string]int    // requests, by path
	open    map[string]int    // requests under way, by path
}

// openDoor opens a door to a node.
func openDoor(t testing.TB, n *procs.Node, prefix string) *door {
	t.Helper()
	to, err := url.Parse(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	d := &door{prefix: prefix, asked: make(map[string]int), open: make(map[string]int)}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, prefix)
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			d.set(func() {
				if d.page != "" {
					r.Header.Set("X-Claimq-Page", d.page)
				}
			})
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, prefix+"/") {
			http.NotFound(w, r)
			return
		}
		path := strings.TrimPrefix(r.URL.Path, prefix)
		refused, said := "", ""
		d.set(func() { d.asked[path]++; d.open[path]++; refused, said = d.refused[path], d.said[path] })
		defer d.set(func() { d.open[path]-- })
		if refused != "" {
			http.Error(w, refused, http.StatusServiceUnavailable)
			return
		}
		if said != "" {
			_, _ = w.Write([]byte(said)) // the browser may be gone
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	d.URL = server.URL + prefix
	return d
}

// set changes fields that mu guards.
func (d *door) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// answering returns the number of calls of a path that are under way.
func (d *door) answering(path string) (n int) {
	d.set(func() { n = d.open[path] })
	return n
}

// count returns the number of requests for a path.
func (d *door) count(path string) (n int) {
	d.set(func() { n = d.asked[path] })
	return n
}
