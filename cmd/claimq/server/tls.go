package server

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/certs"
)

const (
	// tlsExpiresSoon is the time before a certificate's expiry from which warnings are logged, and tlsWarnInterval
	// their interval. The alert rule has the same bound.
	tlsExpiresSoon  = 14 * 24 * time.Hour
	tlsWarnInterval = 24 * time.Hour
)

// serverTLS is the TLS of a node's ports: of none, one or both.
type serverTLS struct {
	logger hclog.Logger
	http   *tlsPort // nil: plain HTTP
	peer   *tlsPort // nil: no TLS
	// changed is called when a port's files have changed.
	changed func()
}

// tlsPort is the certificate of one port.
type tlsPort struct {
	name     string
	store    *certs.Store
	warnedAt time.Time // for the goroutine that looks
}

// openTLS reads the certificates named in cfg. changed is called when they have changed later.
func openTLS(cfg config.Server, logger hclog.Logger, changed func()) (*serverTLS, error) {
	t := &serverTLS{logger: logger, changed: changed}
	for _, p := range []struct {
		port  **tlsPort
		name  string
		files certs.Files
	}{
		{&t.http, "http", certs.Files{Cert: cfg.HTTPTLS.CertFile, Key: cfg.HTTPTLS.KeyFile, Authorities: cfg.HTTPTLS.ClientCAFile}},
		{&t.peer, "peer", certs.Files{Cert: cfg.PeerTLS.CertFile, Key: cfg.PeerTLS.KeyFile, Authorities: cfg.PeerTLS.CAFile, Mutual: true}},
	} {
		if p.files.Cert == "" {
			continue
		}
		store, err := certs.Open(p.files)
		if err != nil {
			return nil, term.UsageErrorf("%s_tls: %w", p.name, err)
		}
		*p.port = &tlsPort{name: p.name, store: store}
		t.warn(*p.port, time.Now())
	}
	return t, nil
}

func (t *serverTLS) ports() []*tlsPort {
	var ports []*tlsPort
	for _, p := range []*tlsPort{t.http, t.peer} {
		if p != nil {
			ports = append(ports, p)
		}
	}
	return ports
}

// httpConfig returns the TLS of the API's port, or nil. Each connection gets the current certificates.
func (t *serverTLS) httpConfig() *tls.Config {
	if t.http == nil {
		return nil
	}
	type made struct {
		of  *certs.Set
		cfg *tls.Config
	}
	var last atomic.Pointer[made]
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			set := t.http.store.Current()
			m := last.Load()
			if m == nil || m.of != set {
				m = &made{set, newHTTPConfig(set)}
				last.Store(m)
			}
			return m.cfg, nil
		},
	}
}

func newHTTPConfig(set *certs.Set) *tls.Config {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{set.Certificate},
	}
	if set.Authorities != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, set.Authorities
		// Otherwise a client could be accepted because of an earlier check.
		cfg.SessionTicketsDisabled = true
	}
	return cfg
}

// peerCertificate returns the TLS of the peer port, or nil.
func (t *serverTLS) peerCertificate() cluster.PeerCertificate {
	if t.peer == nil {
		return nil
	}
	return func() (tls.Certificate, *x509.CertPool) {
		set := t.peer.store.Current()
		return set.Certificate, set.Authorities
	}
}

func peerTLSMode(name string) cluster.TLSMode {
	switch name {
	case "prefer":
		return cluster.TLSPrefer
	case "accept":
		return cluster.TLSAccept
	default:
		return cluster.TLSRequired
	}
}

// register registers the metrics of the certificates.
func (t *serverTLS) register(registry *prometheus.Registry) error {
	for _, p := range t.ports() {
		expiry := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "claimq_tls_certificate_expiry_seconds",
			Help:        "When the certificate of a port expires, or the first one by which it is checked, in Unix time.",
			ConstLabels: prometheus.Labels{"port": p.name},
		}, func() float64 { return float64(p.store.Current().ExpiresAt.Unix()) })
		if err := registry.Register(expiry); err != nil {
			return fmt.Errorf("register the metric of certificates: %w", err)
		}
	}
	return nil
}

// look applies changes of the files.
func (t *serverTLS) look(now time.Time) {
	for _, p := range t.ports() {
		changed, err := p.store.Reload(now)
		switch {
		case err != nil:
			t.logger.Error("the new certificate files are of no use: the certificate before stays in use", "port", p.name, "error", err)
		case changed:
			t.logger.Info("new certificate", "port", p.name, "expires_at", p.store.Current().ExpiresAt.UTC().Format(time.RFC3339))
			p.warnedAt = time.Time{}
			t.changed()
		}
		t.warn(p, now)
	}
}

// warn warns once a day of a certificate that has expired or will soon.
func (t *serverTLS) warn(p *tlsPort, now time.Time) {
	set := p.store.Current()
	err := set.CheckTime(now)
	if now.Sub(p.warnedAt) < tlsWarnInterval || err == nil && set.ExpiresAt.Sub(now) > tlsExpiresSoon {
		return
	}
	p.warnedAt = now
	if err != nil {
		t.logger.Error("others will refuse this port's certificate: put a new one in its place, which needs no restart", "port", p.name, "error", err)
		return
	}
	t.logger.Warn("the certificate expires soon: put a new one in its place, which needs no restart", "port", p.name, "expires_at", set.ExpiresAt.UTC().Format(time.RFC3339))
}

// apiURL returns the advertised URL of this node's API.
func apiURL(cfg config.Server) string {
	scheme := "http://"
	if cfg.HTTPTLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + cmp.Or(cfg.HTTPAdvertise, cfg.HTTPAddr)
}
