package main

import (
	"bytes"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// healthOf runs claimq health against a server at the address.
func healthOf(t *testing.T, addr string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	environ := []string{"CLAIMQ_NODE_ID=n1", "CLAIMQ_DATA_DIR=d", "CLAIMQ_HTTP_ADDR=" + addr, "CLAIMQ_HTTP_ADVERTISE=127.0.0.1:1", "CLAIMQ_INSECURE=true"}
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: environ}
	code = run(t.Context(), a, append([]string{"health"}, args...))
	return out.String(), errs.String(), code
}

// wellAndUnready answers like a live node without a leader.
func wellAndUnready(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-API-Key") != "" || r.URL.Path != "/healthz" {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"Not ready","code":"no_leader","message":"Wait"}`))
		return
	}
	_, _ = w.Write([]byte(`{"status":"alive","node_id":"n1"}`))
}

func TestHealth(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer other.Close()
	if _, stderr, code := healthOf(t, other.Listener.Addr().String()); code != term.ExitRefused || !strings.Contains(stderr, "did not answer as claimq does: hello") {
		t.Errorf("another server: %d, %s", code, stderr)
	}
	plain := httptest.NewServer(http.HandlerFunc(wellAndUnready))
	defer plain.Close()
	addr := plain.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{addr, "0.0.0.0:" + port} {
		if stdout, stderr, code := healthOf(t, at); code != term.ExitDone || stdout != "n1 is alive\n" {
			t.Errorf("at %s: %d, %s%s", at, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := healthOf(t, addr, "--ready"); code != term.ExitRefused || !strings.Contains(stderr, "/readyz answered: Not ready (no_leader): Wait\n") {
		t.Errorf("not ready: %d, %s%s", code, stdout, stderr)
	}
	if _, stderr, code := healthOf(t, addr, "--node-id", "no/id"); code != term.ExitUsage || !strings.Contains(stderr, "node_id") {
		t.Errorf("a server that would not start: %d, %s", code, stderr)
	}
	var errs bytes.Buffer
	if code := run(t.Context(), &term.App{Stderr: &errs}, []string{"health"}); code != term.ExitUsage || !strings.Contains(errs.String(), "the server's settings are needed, to find it: give --config FILE") {
		t.Errorf("without settings: %d, %s", code, &errs)
	}
	if stdout, stderr, code := healthOf(t, addr, "--output", "json"); code != term.ExitDone || stdout != "{\"status\":\"alive\",\"node_id\":\"n1\"}\n" {
		t.Errorf("as JSON: %d, %s%s", code, stdout, stderr)
	}
	plain.Close()
	if _, stderr, code := healthOf(t, addr); code != term.ExitRefused || !strings.Contains(stderr, "refused") {
		t.Errorf("no server: %d, %s", code, stderr)
	}
}

// health accepts any certificate. If the server wants a client certificate, health only checks that the port takes
// connections.
func TestHealth_TLS(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(wellAndUnready))
	secure.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil) // it would log connections that sent nothing
	secure.StartTLS()
	defer secure.Close()
	addr := secure.Listener.Addr().String()
	file := filepath.Join(t.TempDir(), "any.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--http-tls-cert-file", file, "--http-tls-key-file", file}
	if stdout, stderr, code := healthOf(t, addr, args...); code != term.ExitDone || stdout != "n1 is alive\n" {
		t.Errorf("%d, %s%s", code, stdout, stderr)
	}
	args = append(args, "--ready", "--http-tls-client-ca-file", file)
	if stdout, stderr, code := healthOf(t, addr, args...); code != term.ExitDone || stdout != "n1 is taking connections\n" {
		t.Errorf("with certificates of clients: %d, %s%s", code, stdout, stderr)
	}
	plain := httptest.NewServer(http.HandlerFunc(wellAndUnready))
	defer plain.Close()
	for want, at := range map[string][]string{"/readyz answered: Not ready (no_leader)": args, "n1 is alive\n": append([]string{"--http-tls-client-ca-file", file}, args[:4]...)} {
		if stdout, stderr, _ := healthOf(t, addr, append(at, "--health-addr", plain.Listener.Addr().String())...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("at the port for probes it says %q, want %q", stdout+stderr, want)
		}
	}
	secure.Close()
	if _, stderr, code := healthOf(t, addr, args...); code != term.ExitRefused || !strings.Contains(stderr, "refused") {
		t.Errorf("no server: %d, %s", code, stderr)
	}
}
