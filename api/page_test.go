package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/web"
)

// pageHeaders restrict the page; their values are decisions, so the test repeats them.
var pageHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}

// The page is served with and without keys, by any node, to any client; its files have their hash in the path.
func TestPage(t *testing.T) {
	t.Parallel()
	open, node := setup(t)
	node.Follower = true // and there is no leader
	keyed, _ := setup(t, withKeys(allRoles()...))
	site, err := web.Built()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Server{open, keyed} {
		for _, from := range []string{"Accept: text/html", "Sec-Fetch-Site: cross-site", "Origin: http://evil.example"} {
			got := s.call(t, "GET /ui/", "", from)
			if got.status != 200 || got.header["Content-Type"] != "text/html; charset=utf-8" || got.header["Cache-Control"] != "no-cache" || !strings.Contains(got.body, "claimq") {
				t.Errorf("%s: %d %v %s", from, got.status, got.header, got.body)
			}
			for name, want := range pageHeaders {
				if got.header[name] != want {
					t.Errorf("%s is %q, want %q", name, got.header[name], want)
				}
			}
		}
		zipped := s.call(t, "GET /ui/?any=1", "", "Accept-Encoding: br, gzip")
		if vary := zipped.header["Vary"]; vary != "Accept-Encoding, Origin" {
			t.Errorf("what it varies by: %s", vary)
		}
		if f, _ := site.Find(""); zipped.header["Content-Encoding"] != "gzip" || zipped.body != string(f.Zipped) {
			t.Errorf("zipped: %v", zipped.header)
		}
		s.call(t, "GET /ui/a/"+site.Hash()+"/none.js", "").refused(t, wire.CodeNotFound)
		s.call(t, "GET /ui/../api/tasks", "").refused(t, wire.CodeNotFound)
	}
	open.call(t, "GET /ui/", "", "Host: evil.example").refused(t, wire.CodeForbidden)
}

// A browser is redirected to the page by relative addresses, which also work behind a proxy's path; other programs
// get a list of addresses.
func TestPage_Root(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(allRoles()...))
	off, _ := setup(t, func(c *Config) { c.Page.Off = true })
	const browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, target := range []string{"GET /", "GET /ui"} {
		if got := s.call(t, target, "", browser, "Sec-Fetch-Site: cross-site"); got.status != 302 || got.header["Location"] != "ui/" {
			t.Errorf("%s: %d %v", target, got.status, got.header)
		}
	}
	for server, page := range map[*Server]bool{s: true, off: false} {
		got := server.call(t, "GET /", "", "Accept: */*")
		var told struct {
			Name, Version string
			Links         map[string]string
		}
		if err := json.Unmarshal([]byte(got.body), &told); err != nil || got.status != 200 || told.Name != "claimq" || told.Version != "v0.0.1" {
			t.Errorf("%d %s: %v", got.status, got.body, err)
		}
		if _, ok := told.Links["page"]; ok != page {
			t.Errorf("links %v", told.Links)
		}
		for name, address := range told.Links {
			if a := server.call(t, "GET /"+address, "", with("operator")); a.status != 200 {
				t.Errorf("the link %s, %s: %d", name, address, a.status)
			}
		}
	}
	if got := off.call(t, "GET /", "", browser); got.status != 200 {
		t.Errorf("without a page: %d", got.status)
	}
	for _, target := range []string{"GET /ui", "GET /ui/", "GET /ui/session", "GET /ui/a/x/app.js"} {
		off.call(t, target, "", browser).refused(t, wire.CodeNotFound)
	}
}

// Each answer to the page tells which page the node has; other answers do not.
func TestPage_Told(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, allRoles()...)
	site, err := web.Built()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Server{leader, follower} {
		for _, target := range []string{"GET /api/types", "GET /ui/session", "GET /readyz", "GET /none"} {
			for _, page := range []bool{true, false} {
				headers := []string{with("reader")}
				wantHash, wantNode := "", ""
				if page {
					headers, wantHash, wantNode = append(headers, "X-Claimq-Page: 0"), site.Hash(), s.cfg.Node.NodeID()
				}
				h := s.call(t, target, "", headers...).header
				if h["X-Claimq-Page"] != wantHash || h["X-Claimq-Node"] != wantNode || h["X-Content-Type-Options"] != "nosniff" {
					t.Errorf("%s, of the page: %v: %v", target, page, h)
				}
			}
		}
	}
}

// What the page needs first requires no key.
func TestPage_Session(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		option func(*Config)
		want   string
	}{
		{func(*Config) {}, `"login":false,"open":"loopback"`},
		{func(c *Config) { c.Insecure = true }, `"login":false,"open":"insecure"`},
		{withKeys(allRoles()...), `"login":true,"open":""`},
	} {
		s, _ := setup(t, c.option)
		if got := s.call(t, "GET /ui/session", ""); got.status != 200 || !strings.Contains(got.body, c.want) || got.header["Cache-Control"] != "no-store" {
			t.Errorf("%d %s %v, want %s", got.status, got.body, got.header, c.want)
		}
		s.call(t, "GET /ui/session", "", "Sec-Fetch-Site: same-site").refused(t, wire.CodeForbidden)
	}
}
