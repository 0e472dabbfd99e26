package oidc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/hashicorp/go-hclog"
)

// Limits for talking to an issuer.
const (
	// refreshInterval is the interval at which its keys are fetched.
	refreshInterval = 5 * time.Minute
	// retryInterval is the first pause after a failed fetch. It doubles up to retryMax.
	retryInterval = time.Second
	retryMax      = time.Minute
	// askInterval is the least time between two fetches because of tokens that are signed
	// with an unknown key.
	askInterval = 10 * time.Second
	// keysUseMax is the age up to which keys that could not be fetched again are used.
	keysUseMax = 24 * time.Hour
	// keysMax bounds the keys of an issuer.
	keysMax = 100
	// fetchTimeout bounds a fetch, discovery and keys together.
	fetchTimeout = 10 * time.Second
	// discoveryBytes and keysBytes bound the two bodies.
	discoveryBytes = 64 << 10
	keysBytes      = 256 << 10
)

// algorithms is never changed.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Algorithms returns the names of the algorithms by which tokens may be signed. None of
// them needs a secret that the issuer shares with those that check its tokens.
func Algorithms() []string { return slices.Clone(algorithms) }

// CheckURL returns an error unless issuer is the URL of an issuer: https, or http on this
// machine, and nothing but scheme, host and path.
func CheckURL(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return errors.New("it must be https://HOST, with a port and a path if the issuer has them")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(issuer, "#"):
		return errors.New("it must have no user, query or fragment")
	}
	return checkScheme(u)
}

// checkScheme refuses URLs whose answers could be changed on the way.
func checkScheme(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
		return nil
	}
	return errors.New("it must begin with https://: http:// is for issuers on this machine alone")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Config describes the issuer and which of its tokens are accepted. All fields without a
// default are required.
type Config struct {
	// URL is the issuer's URL, exactly as in its tokens.
	URL string
	// Audience must be among the audiences of a token.
	Audience string
	// Algorithms lists those by which tokens may be signed, a subset of Algorithms().
	Algorithms []string
	// Leeway bounds the difference between the issuer's clock and this one. It may be 0.
	Leeway time.Duration
	// LifetimeMax bounds the lifetime of a token. 0: no bound.
	LifetimeMax time.Duration
	// CAFile contains the authorities (PEM) that sign the issuer's certificate. It is read
	// again before each fetch; if it is invalid, the previous ones stay in use. "": the
	// system's.
	CAFile string
	// Logger is told when the keys can no longer be fetched, and when they can again. nil:
	// none.
	Logger hclog.Logger
}

// same reports whether both describe the same issuer and the same tokens.
func (c *Config) same(other *Config) bool {
	return c.URL == other.URL && c.Audience == other.Audience && slices.Equal(c.Algorithms, other.Algorithms) && c.Leeway == other.Leeway &&
		c.LifetimeMax == other.LifetimeMax && c.CAFile == other.CAFile
}

func (c *Config) validate() error {
	if err := CheckURL(c.URL); err != nil {
		return fmt.Errorf("the issuer's URL is %q: %w", c.URL, err)
	}
	if c.Audience == "" {
		return errors.New("the audience is missing")
	}
	if len(c.Algorithms) == 0 {
		return errors.New("there is no algorithm")
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(algorithms, a) {
			return fmt.Errorf("the algorithm %q is none of %s", a, strings.Join(algorithms, ", "))
		}
	}
	if c.Leeway < 0 || c.LifetimeMax < 0 {
		return fmt.Errorf("the leeway (%s) or the longest lifetime (%s) is negative", c.Leeway, c.LifetimeMax)
	}
	return nil
}

// Issuer checks the tokens of an issuer. Its methods are safe for concurrent use.
type Issuer struct {
	cfg        Config
	algorithms []jose.SignatureAlgorithm
	client     *http.Client
	keys       atomic.Pointer[keySet] // nil: not fetched yet

	ask      chan struct{} // has one element if a token asks for new keys
	stop     context.CancelFunc
	over     sync.WaitGroup
	fetching atomic.Bool   // or about to
	lost     atomic.Bool   // the last fetch failed
	asked    atomic.Int64  // when a token last asked for new keys, in Unix nanoseconds; 0: never
	fetched  atomic.Uint64 // successful fetches
	failed   atomic.Uint64
}

// Open starts fetching the issuer's keys without waiting for them: an issuer that cannot be
// reached is not an error. The caller must call Close.
func Open(cfg Config) (*Issuer, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	client, err := newHTTPClient(&cfg)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	i := &Issuer{cfg: cfg, client: client, ask: make(chan struct{}, 1)}
	for _, a := range cfg.Algorithms {
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(a))
	}
	ctx, stop := context.WithCancel(context.Background())
	i.stop = stop
	i.fetching.Store(true)
	i.over.Go(func() { i.run(ctx) })
	return i, nil
}

// Close stops the fetching and waits for that. It may be called twice. The keys stay
// usable.
func (i *Issuer) Close() {
	i.stop()
	i.over.Wait()
	i.client.CloseIdleConnections()
}

// Serves reports whether the issuer does the same as one opened with cfg.
func (i *Issuer) Serves(cfg *Config) bool { return i.cfg.same(cfg) }

// Stats counts what an issuer has done so far.
type Stats struct {
	Fetched, Failed uint64        // fetches of its keys
	Keys            int           // the number of current keys
	Age             time.Duration // of the keys; negative: never fetched
}

// Stats returns the counts so far.
func (i *Issuer) Stats(now time.Time) Stats {
	s := Stats{Fetched: i.fetched.Load(), Failed: i.failed.Load(), Age: -1}
	if keys := i.keys.Load(); keys != nil {
		s.Keys, s.Age = len(keys.all), max(now.Sub(keys.at), 0)
	}
	return s
}

// run fetches the keys until ctx ends: every refreshInterval, soon after a failure, and
// when a token asks.
func (i *Issuer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	wait := retryInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.ask:
		case <-timer.C:
		}
		i.fetching.Store(true)
		keys, err := i.fetch(ctx)
		next := refreshInterval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			i.failed.Add(1)
			if !i.lost.Swap(true) {
				i.cfg.Logger.Warn("the keys of the issuer of tokens could not be fetched: those from before, if any, stay in use for a day", "issuer", i.cfg.URL, "error", err)
			}
			next = wait
			wait = min(2*wait, retryMax)
		default:
			if before := i.keys.Swap(keys); before == nil || i.lost.Load() {
				i.cfg.Logger.Info("the keys of the issuer of tokens were fetched", "issuer", i.cfg.URL, "keys", len(keys.all))
			}
			i.fetched.Add(1)
			i.lost.Store(false)
			wait = retryInterval
		}
		i.fetching.Store(false)
		timer.Reset(next)
	}
}

// askForKeys requests a fetch because of a token that is signed with an unknown key, at
// most once in askInterval, because anyone can make up such tokens. It reports whether the
// token may still prove valid: the keys are being fetched, or could not be.
func (i *Issuer) askForKeys(now time.Time) bool {
	if i.fetching.Load() {
		return true
	}
	at, last := now.UnixNano(), i.asked.Load()
	if last != 0 && at >= last && at-last < int64(askInterval) || !i.asked.CompareAndSwap(last, at) {
		return i.lost.Load() || i.fetching.Load()
	}
	i.fetching.Store(true)
	select {
	case i.ask <- struct{}{}:
	default:
	}
	return true
}
