package api

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/certs/certstest"
)

// A connection of a client with a certificate ends with an answer once it is old enough, and so does a stream over it.
// Other connections stay.
func TestServer_ConnAge(t *testing.T) {
	t.Parallel()
	ours := certstest.NewAuthority(t, "ours")
	serve := func(age time.Duration) (addr string, client *tls.Config) {
		_, _, addr, client = setupTLS(t, func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, ours.Pool(), true
		}, func(c *Config) { c.ConnAge = age })
		return addr, client
	}
	shown := []tls.Certificate{ours.Issue([]string{"worker"}).TLS(t)}
	open := func(addr string, client *tls.Config, own []tls.Certificate) (ask func() *http.Response) {
		cfg := client.Clone()
		cfg.Certificates = own
		conn := dialTLS(t, addr, cfg)
		r := bufio.NewReader(conn)
		return func() *http.Response {
			t.Helper()
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(r, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%+v, %v", resp, err)
			}
			return resp
		}
	}

	addr, client := serve(100 * time.Millisecond)
	none := open(addr, client, nil)
	none()
	old := open(addr, client, shown)
	for !old().Close {
	}
	if none().Close {
		t.Error("the connection of a client without a certificate ends, too")
	}
	cfg := client.Clone()
	cfg.Certificates = shown
	stream := streamOver(t, dialTLS(t, addr, cfg), "GET /api/events")
	if _, err := io.Copy(io.Discard, stream.body); err != nil {
		t.Errorf("the stream does not end as streams do: %v", err)
	}

	addr, client = serve(0)
	if open(addr, client, shown)().Close {
		t.Error("a new connection ends by default")
	}
}
