package client_test

import (
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

// A server that refuses the client's certificate has done nothing, also where a
// repeat would not be safe; with a good one all is well.
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
		cfg, timeout := &tls.Config{RootCAs: ours.Pool()}, time.Second // it is tried until then
		if c.says == "" {
			timeout = time.Minute
		}
		if c.by != nil {
			own := c.by.Issue([]string{"worker"}).TLS(t)
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		}
		cl, err := client.New(client.Config{Endpoints: []string{server.URL}, TLS: cfg, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		retry := client.Request{Method: http.MethodPost, Path: "/api/tasks/1/retry", Body: []byte("{}")}
		_, err = cl.Do(t.Context(), retry)
		for tries := 0; tries < 20 && errors.Is(err, client.ErrOutcomeUnknown); tries++ {
			_, err = cl.Do(t.Context(), retry) // the end of the time may have cut the last try
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || errors.Is(err, client.ErrOutcomeUnknown) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
