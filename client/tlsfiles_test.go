package client_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// The files of a client's certificate and authorities count again while it runs; what is not in order
// leaves what was there before.
func TestConfig_tlsFiles(t *testing.T) {
	t.Parallel()
	before, after := certstest.NewAuthority(t, "before"), certstest.NewAuthority(t, "after")
	var now atomic.Pointer[tls.Config]
	by := func(a *certstest.Authority) *tls.Config {
		return &tls.Config{
			Certificates: []tls.Certificate{a.Issue([]string{"127.0.0.1"}).TLS(t)},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
		}
	}
	now.Store(by(before))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"success":true}`) }))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil }}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // net/http takes no other
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	files := certstest.Write(t, dir, before.Issue([]string{"worker"}), before)
	c, err := client.New(client.Config{
		Endpoints: []string{server.URL}, CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call := func() {
		t.Helper()
		server.CloseClientConnections()
		if _, err := c.Do(t.Context(), client.Request{Method: http.MethodGet, Path: "/api/stats"}); err != nil {
			t.Error(err)
		}
	}
	call()
	certstest.Put(t, files.Cert, []byte("in the midst of being written"))
	call()
	certstest.Write(t, dir, after.Issue([]string{"worker"}), after)
	now.Store(by(after))
	call()
	if err := os.Remove(files.CA); err != nil {
		t.Fatal(err)
	}
	call()
}

// Files that cannot be read, or that do not go together, are refused at the start.
func TestConfig_tlsFiles_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	by := certstest.NewAuthority(t, "a")
	files := certstest.Write(t, dir, by.Issue([]string{"worker"}), by)
	for name, c := range map[string]struct {
		cfg  client.Config
		says string
	}{
		"no key":      {client.Config{CertFile: files.Cert}, "go together"},
		"no file":     {client.Config{CAFile: dir + "/none"}, dir + "/none"},
		"swapped":     {client.Config{CertFile: files.Key, KeyFile: files.Cert}, "swapped"},
		"no CA":       {client.Config{CAFile: files.Key}, files.Key},
		"all is well": {client.Config{CAFile: files.CA}, ""},
	} {
		got, err := client.New(c.cfg)
		if err == nil {
			got.Close()
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
