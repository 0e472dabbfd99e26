package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// A server that refuses the client's certificate has done nothing, even if a repeat would not be safe.
func TestClient_untrusted(t *testing.T) {
	t.Parallel()
	ours, others := certstest.NewAuthority(t, "ours"), certstest.NewAuthority(t, "others'")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"success":true}`) }))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{ours.Issue([]string{"127.0.0.1"}).TLS(t)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ours.Pool(),
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // net/http takes no other
	server.StartTLS()
	defer server.Close()
	for name, c := range map[string]struct {
		by   *certstest.Authority
		says string
	}{"none": {nil, "certificate required"}, "others'": {others, "unknown certificate authority"}, "ours": {ours, ""}} {
		cfg := &tls.Config{RootCAs: ours.Pool()}
		if c.by != nil {
			own := c.by.Issue([]string{"worker"}).TLS(t)
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		}
		// Repeats end at the timeout, which a busy machine may spend on handshakes.
		for timeout := time.Second; ; timeout *= 2 {
			err := callOnce(t, server.URL, cfg, timeout)
			ok := err == nil
			if c.says != "" {
				ok = err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && strings.Contains(err.Error(), c.says)
			}
			if ok {
				break
			}
			if timeout >= time.Minute || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

// callOnce makes a call that changes something, with a new client.
func callOnce(t *testing.T, url string, cfg *tls.Config, timeout time.Duration) error {
	t.Helper()
	cl, err := client.New(client.Config{Endpoints: []string{url}, TLS: cfg, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	_, err = cl.Do(t.Context(), client.Request{Method: http.MethodPost, Path: "/api/tasks/1/retry", Body: []byte("{}")})
	return err
}
