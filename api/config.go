package api

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api/audit"
	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/internal/zones"
)

// Node is what the API needs of a node: see exchange.Node.
type Node = exchange.Node

// Page is what is served of the page.
type Page = exchange.Page

// Config is what New needs. Only Node is required; zero fields have the
// defaults that they name.
type Config struct {
	// Node does the work.
	Node exchange.Node
	// Logger gets one line per internal error and per change of state, never
	// one per request. nil: none.
	Logger hclog.Logger
	// Registry is what /metrics shows; the server registers its own metrics
	// there. nil: a registry with only those.
	Registry *prometheus.Registry
	// Insecure says that the server listens beyond loopback without keys. Then
	// a Host header that is any IP address is let in as well: a name that an
	// attacker points at the server is what the check is about.
	Insecure bool
	// AdvertisedHosts are the names and addresses, with or without scheme and
	// port, that clients may use in the Host header beside the loopback ones.
	AdvertisedHosts []string
	// Keys reads the API keys as they are configured: New calls it, and every
	// reload. nil, or none, and no Tokens: the server is open.
	Keys func() ([]keyring.Key, error)
	// Tokens reads whose tokens are taken beside the keys, when Keys are read. nil, or nil
	// of it: nobody's.
	Tokens func() (*keyring.Tokens, error)
	// Audit gets every request with a known key that is denied. nil: nobody does.
	Audit *audit.Writer
	// AllowedOrigins are the origins, as https://host[:port], whose pages may
	// call the API from a browser.
	AllowedOrigins []string
	// Page is what is served of the page below /ui/.
	Page exchange.Page
	// Version is the binary's, shown by /healthz.
	Version string
	// Zones are the time zones of schedules; nil: those in the binary.
	Zones *zones.Source
	// Limits bound what a request may ask for.
	Limits bound.Limits
	// Wait bounds how long a request waits for the node: a mutation then
	// answers outcome_unknown, a read overloaded. 0: 10 s. It may be up to half
	// a second less.
	Wait time.Duration
	// TLS makes the server speak HTTPS; its certificates are asked for by a
	// function of it, so that they can change. nil: plain HTTP.
	TLS *tls.Config
	// ClientAuthorities returns the authorities by which TLS checks the certificates
	// of clients now, nil for none: a connection is closed soon after none of them
	// vouches for its client. It may be called by several goroutines. nil: none.
	ClientAuthorities func() *x509.CertPool
	// Connections bounds the open connections; one more is answered overloaded
	// and closed. 0: 16,384.
	Connections int
	// ConnectionsPerAddress bounds those of them, from one address, that have shown
	// no valid key yet; of one more, the longest that has waited is closed. An IPv6
	// address counts for its /64. 0: 1,024.
	ConnectionsPerAddress int
	// WaitsPerKey bounds the claims and GETs with wait_ms of one key that wait at the
	// same time, on the leader those that other nodes passed on, too. One more is answered
	// overloaded. 0: 16,384.
	WaitsPerKey int
	// BodiesBytes bounds what the bodies of the requests that are received and
	// answered take together, each three times, for what is made of it, those of up to 32 KiB
	// left out; one more is answered overloaded. At least one body of Limits.BodyBytes.
	// 0: 768 MiB.
	BodiesBytes int64
	// AnswersBytes bounds what answers take together that are made and not written
	// yet, those of up to 32 KiB left out. One more is answered overloaded; one about
	// what was done waits. 0: 256 MiB.
	AnswersBytes int64
	// HistoryBytes is about what the history of counts of types and of all tasks may take,
	// which GET /api/history shows. 0: none is kept.
	HistoryBytes int64
}

const (
	defaultWait        = 10 * time.Second
	defaultConnections = 16_384
	defaultPerAddress  = 1_024
	defaultKeyWaits    = 16_384
	defaultBodiesBytes = 768 << 20
	defaultAnswerBytes = 256 << 20
)

func (c *Config) setDefaults() {
	c.Limits.SetDefaults()
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	c.Wait = cmp.Or(c.Wait, defaultWait)
	c.BodiesBytes = cmp.Or(c.BodiesBytes, defaultBodiesBytes)
	c.AnswersBytes = cmp.Or(c.AnswersBytes, defaultAnswerBytes)
	c.Connections = cmp.Or(c.Connections, defaultConnections)
	c.ConnectionsPerAddress = cmp.Or(c.ConnectionsPerAddress, defaultPerAddress)
	c.WaitsPerKey = cmp.Or(c.WaitsPerKey, defaultKeyWaits)
}

func (c *Config) validate() error {
	if c.Node == nil {
		return errors.New("api: Config.Node is missing")
	}
	if !c.Limits.Valid() {
		return fmt.Errorf("api: Config.Limits out of range: %+v", c.Limits)
	}
	if least := port.BodyCopies * int64(c.Limits.BodyBytes+exchange.HeaderBytes); c.BodiesBytes < least {
		return fmt.Errorf("api: Config.BodiesBytes is %d, less than what one body and its headers take, %d", c.BodiesBytes, least)
	}
	if c.WaitsPerKey < 1 {
		return fmt.Errorf("api: Config.WaitsPerKey is %d", c.WaitsPerKey)
	}
	if c.HistoryBytes < 0 {
		return fmt.Errorf("api: Config.HistoryBytes is %d", c.HistoryBytes)
	}
	if c.AnswersBytes < 0 {
		return fmt.Errorf("api: Config.AnswersBytes is %d", c.AnswersBytes)
	}
	if c.Wait < 0 || c.Connections < 1 || c.ConnectionsPerAddress < 1 {
		return fmt.Errorf("api: Config.Wait (%s), Config.Connections (%d) or Config.ConnectionsPerAddress (%d) out of range", c.Wait, c.Connections, c.ConnectionsPerAddress)
	}
	return nil
}
