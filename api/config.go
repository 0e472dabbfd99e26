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

// Node is the node that the API calls; see exchange.Node.
type Node = exchange.Node

// Page configures the page for browsers.
type Page = exchange.Page

// Config configures a server. Only Node is required; each zero field has the default that it names.
type Config struct {
	// Node performs the calls.
	Node exchange.Node
	// Logger gets a line for each internal error and change of state, never for each request. nil: none.
	Logger hclog.Logger
	// Registry is shown by /metrics; the server registers its own metrics in it. nil: a registry with only those.
	Registry *prometheus.Registry
	// Insecure says that the server listens beyond loopback without keys. Then any IP address is accepted as the
	// Host, because the check of Host is only against names that an attacker points at the server.
	Insecure bool
	// AdvertisedHosts are the names and addresses, optionally with scheme and port, that clients may use as the Host
	// in addition to loopback.
	AdvertisedHosts []string
	// Keys returns the configured API keys; New and every reload call it. If it is nil or returns none, and there are
	// no Tokens, the server is open to everyone.
	Keys func() ([]keyring.Key, error)
	// Tokens returns how tokens are checked, which are accepted in addition to keys; it is called together with Keys.
	// If it is nil or returns nil, no tokens are accepted.
	Tokens func() (*keyring.Tokens, error)
	// Audit records every denied request with a known key. nil: none are recorded.
	Audit *audit.Writer
	// AllowedOrigins are the origins, as https://host[:port], whose pages may call the API from a browser.
	AllowedOrigins []string
	// Page configures the page below /ui/.
	Page exchange.Page
	// Version is the binary's version, shown by /healthz.
	Version string
	// Zones are the time zones for schedules; nil: those built into the binary.
	Zones *zones.Source
	// Limits bound what a request may ask for.
	Limits bound.Limits
	// Wait bounds how long a request waits for the node. After that a mutation answers outcome_unknown, and a read
	// overloaded. 0: 10 s. The actual wait may be up to half a second shorter.
	Wait time.Duration
	// TLS makes the server use HTTPS. Its certificates should come from one of its functions, so that they can be
	// renewed. nil: plain HTTP.
	TLS *tls.Config
	// ClientAuthorities returns the current authorities for client certificates, or nil. A connection is closed soon
	// after its client's certificate is no longer signed by one of them. It may be called concurrently. nil: none.
	ClientAuthorities func() *x509.CertPool
	// Connections bounds the open connections; further ones are answered overloaded and closed. 0: 16,384.
	Connections int
	// ConnectionsPerAddress bounds the connections from one address that have not shown a valid key yet. If there is
	// one more, the one that has waited longest is closed. An IPv6 address counts as its /64. 0: 1,024.
	ConnectionsPerAddress int
	// WaitsPerKey bounds the waiting claims and GETs (wait_ms) of one key, including those that other nodes forwarded
	// to this one as leader. Further ones are answered overloaded. 0: 16,384.
	WaitsPerKey int
	// BodiesBytes bounds the memory for the bodies of requests that are being received and answered; further ones are
	// answered overloaded. Each counts three times, because of what is made of it; bodies of up to 32 KiB do not
	// count. It must permit at least one body of Limits.BodyBytes. 0: 768 MiB.
	BodiesBytes int64
	// AnswersBytes bounds the memory for answers that are not written yet, except those of up to 32 KiB. Further
	// requests are answered overloaded; an answer about something that was done waits instead. 0: 256 MiB.
	AnswersBytes int64
	// HistoryBytes bounds, approximately, the memory for the history that GET /api/history shows. 0: no history is
	// kept.
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
