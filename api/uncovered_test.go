package api

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/internal/testwait"
)

// A client whose certificate is no longer vouched for gets one more answer, or none if it asks nothing; one of an
// authority that stays notices nothing.
func TestServer_UncoveredClients(t *testing.T) {
	t.Parallel()
	stays, goes := certstest.NewAuthority(t, "stays"), certstest.NewAuthority(t, "goes")
	both := stays.Pool()
	both.AppendCertsFromPEM(goes.PEM())
	var trusted atomic.Pointer[x509.CertPool]
	trusted.Store(both)
	s, _, addr, client := setupTLS(t, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, both, true
	}, func(c *Config) { c.ClientAuthorities = trusted.Load })
	open := func(a *certstest.Authority) (ask func() (*http.Response, error), conn *tls.Conn) {
		cfg := client.Clone()
		cfg.Certificates = []tls.Certificate{a.Issue([]string{"worker"}).TLS(t)}
		conn = dialTLS(t, addr, cfg)
		r := bufio.NewReader(conn)
		return func() (*http.Response, error) {
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				return nil, err
			}
			resp, err := http.ReadResponse(r, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			return resp, err
		}, conn
	}
	staying, _ := open(stays)
	asking, _ := open(goes)
	silent, silentConn := open(goes)
	for _, ask := range []func() (*http.Response, error){staying, asking, silent} {
		if resp, err := ask(); err != nil || resp.StatusCode != http.StatusOK || resp.Close {
			t.Fatalf("at first: %v, %v", resp, err)
		}
	}
	trusted.Store(stays.Pool())
	waitFor(t, func() bool { // the server has looked
		_, uncovered := s.host.Port.Shown()
		return uncovered == 2
	})
	if resp, err := asking(); err != nil || resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("one more answer: %+v, %v", resp, err)
	}
	s.host.Port.EndUncovered(time.Now().Add(port.UncoveredGrace))
	_ = silentConn.SetReadDeadline(time.Now().Add(testwait.Patience))
	if _, err := io.Copy(io.Discard, silentConn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("who says nothing is not cut off: %v", err)
	}
	if resp, err := staying(); err != nil || resp.Close {
		t.Errorf("the one that stays: %+v, %v", resp, err)
	}
	waitFor(t, func() bool { all, _ := s.host.Port.Shown(); return all == 1 })
}
