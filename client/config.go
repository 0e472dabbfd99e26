package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/keyfile"
)

// Limits and timeouts of a client.
const (
	// callTimeout is the default of Config.Timeout.
	callTimeout = 30 * time.Second
	// headerTimeout limits how long a node may take to begin its answer, unless the request allows a wait. A paused
	// process keeps its connections, and another node may lead by now.
	headerTimeout = 5 * time.Second
	// connsMax bounds the connections to one node; further calls wait for one.
	connsMax = 256
	// waitingConnsMax bounds the connections for requests that the server may hold. They are separate so that waiting
	// claims never hold up an extend.
	waitingConnsMax = 1024
	// connIdle is below the server's own timeout, so that the client seldom sends a request on a connection that the
	// server is about to close.
	connIdle = 30 * time.Second
	// answerBytesMax bounds the body of an answer. The server stops at 8 MiB of payloads, which base64 makes longer,
	// and with steps at 16 MiB plus one task.
	answerBytesMax = 24 << 20
	// endpointsMax bounds Config.Endpoints.
	endpointsMax = 100
)

// LogRepeating is the message that Config.Logger gets when a call is sent again. Its attribute err says why.
const LogRepeating = "claimq: repeating"

// defaultEndpoint is the endpoint of a node on this machine that listens on the default port.
const defaultEndpoint = "http://127.0.0.1:7400"

// Config says how to reach a cluster. The zero value reaches a node on this machine that listens on the default port.
type Config struct {
	// Endpoints are the base URLs of nodes, in the order to try them. A path (a proxy's prefix) is kept; a query is
	// refused. Empty: CLAIMQ_ENDPOINTS, separated by commas, else http://127.0.0.1:7400.
	Endpoints []string
	// APIKey is sent with every request; it may be a token of the servers' issuer. Empty: APIKeyFile, else
	// CLAIMQ_API_KEY, else CLAIMQ_API_KEY_FILE, else none.
	APIKey string
	// APIKeyFile is a file with the key or token on one line, as an alternative to APIKey. Because tokens expire, it
	// is read again at most once a second while calls are made, and before a call fails because its key was refused.
	// If it cannot be read, the previous key stays in use.
	APIKeyFile string
	// TLS configures https endpoints; its NextProtos is ignored. nil: the system's roots.
	TLS *tls.Config
	// CAFile holds the authorities (PEM) that sign the certificates of https endpoints, replacing the system's roots.
	// CertFile and KeyFile are this client's certificate and private key. They take precedence over TLS and are read
	// again at most once a second while calls are made; new connections use the new ones. Files that are invalid are
	// ignored until they are valid again.
	CAFile, CertFile, KeyFile string
	// Dial makes the connections to nodes; it fails if it takes over 8 s. nil: a net.Dialer, or the proxy that the
	// environment names.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout bounds a call with its repeats if its context has no deadline. 0: 30 s. Negative values are refused.
	Timeout time.Duration
	// Logger receives repeats (LogRepeating) and changes of leader, at debug level. nil: none.
	Logger *slog.Logger
}

// New checks the configuration and returns a client. It does not connect. The caller must call Close.
func New(cfg Config) (*Client, error) {
	if len(cfg.Endpoints) == 0 {
		cfg.Endpoints = endpointsFromEnv(os.Getenv("CLAIMQ_ENDPOINTS"))
	}
	if cfg.APIKey == "" && cfg.APIKeyFile == "" {
		if cfg.APIKey = os.Getenv("CLAIMQ_API_KEY"); cfg.APIKey == "" {
			cfg.APIKeyFile = os.Getenv("CLAIMQ_API_KEY_FILE")
		}
	}
	files, err := certs.OpenRenewed(cfg.TLS, cfg.CAFile, cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	transport := func(conns int, header time.Duration) http.RoundTripper {
		return files.Transport(func(t *tls.Config) *http.Transport { return newTransport(cfg, t, conns, header) })
	}
	return newClient(cfg, transport(connsMax, headerTimeout), transport(waitingConnsMax, 0))
}

// newClient is New with given transports; waiting is for requests that the server may hold.
func newClient(cfg Config, transport, waiting http.RoundTripper) (*Client, error) {
	if len(cfg.Endpoints) > endpointsMax {
		return nil, fmt.Errorf("%d endpoints, at most %d", len(cfg.Endpoints), endpointsMax)
	}
	endpoints := make([]string, len(cfg.Endpoints))
	for i, e := range cfg.Endpoints {
		base, err := parseEndpoint(e)
		if err != nil {
			return nil, fmt.Errorf("endpoint %q: %w", e, err)
		}
		endpoints[i] = base
	}
	if strings.ContainsAny(cfg.APIKey, "\r\n\x00") {
		return nil, errors.New("the API key has a line break or a zero byte in it")
	}
	if cfg.APIKey != "" && cfg.APIKeyFile != "" {
		return nil, errors.New("the API key and a file with it are both given: give one of them")
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("timeout is %v, it must not be negative", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = callTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := newClosable(cfg, transport, waiting, endpoints)
	if cfg.APIKeyFile != "" {
		file, err := keyfile.Open(cfg.APIKeyFile)
		if err != nil {
			return nil, fmt.Errorf("API key file: %w", err)
		}
		c.keyFile = file
	}
	return c, nil
}

// endpointsFromEnv splits the value of CLAIMQ_ENDPOINTS.
func endpointsFromEnv(value string) []string {
	var endpoints []string
	for e := range strings.SplitSeq(value, ",") {
		if e = strings.TrimSpace(e); e != "" {
			endpoints = append(endpoints, e)
		}
	}
	if len(endpoints) == 0 {
		return []string{defaultEndpoint}
	}
	return endpoints
}

// parseEndpoint returns the base URL without a trailing slash.
func parseEndpoint(s string) (string, error) {
	scheme, host, ok := strings.Cut(s, "://")
	if !ok {
		host = s
	}
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", fmt.Errorf("it must begin with http:// or https://, as http://%s", host)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", err
	case u.Host == "":
		return "", errors.New("it has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("it must have no user, query or fragment")
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), nil
}
