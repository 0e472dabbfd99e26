package client_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// The files with certificates are read again at run time; invalid ones are ignored.
func TestConfig_tlsFiles(t *testing.T) {
	t.Parallel()
	before, after := certstest.NewAuthority(t, "before"), certstest.NewAuthority(t, "after")
	server, trust := certstest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"success":true}`) }), before)
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
	trust(after)
	call()
	if err := os.Remove(files.CA); err != nil {
		t.Fatal(err)
	}
	call()
}

// Unreadable or mismatching files are refused by New.
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
