// Package oidctest runs an OpenID Connect issuer on this machine, for tests.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// Audience is the audience of the tokens.
const Audience = "claimq-test"

// Issuer serves discovery and keys. Its methods are safe for concurrent use.
type Issuer struct {
	// URL is the issuer's URL.
	URL string

	t  testing.TB
	mu sync.Mutex // guards the fields below

	keys    []jose.JSONWebKey // private; the last one signs
	made    int
	fetches int // of the keys
	down    bool
	body    []byte // sent in place of the keys; nil: the keys
}

// New starts an issuer with one ES256 key, until the end of the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	i.Rotate()
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.URL.Path == "/jwks" {
		i.fetches++
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case i.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"token_endpoint":"not used"}`, i.URL, i.URL+"/jwks")
	case r.URL.Path == "/jwks" && i.body != nil:
		_, _ = w.Write(i.body) // the client sees it cut short
	case r.URL.Path == "/jwks":
		var set jose.JSONWebKeySet
		for _, k := range i.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		_ = json.NewEncoder(w).Encode(set) // the client sees it cut short
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Rotate replaces all keys by a new one.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	i.keys = nil
	i.mu.Unlock()
	i.Add(key, "ES256")
}

// Add adds a key, which signs from then on, and returns its kid.
func (i *Issuer) Add(key crypto.Signer, algorithm string) (kid string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	kid = fmt.Sprintf("k%d", i.made)
	i.keys = append(i.keys, jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: algorithm, Use: "sig"})
	return kid
}

// SetDown makes the issuer answer 503, or stop doing so.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// SetKeys makes the issuer send body in place of its keys; nil: the keys again.
func (i *Issuer) SetKeys(body []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.body = body
}

// Fetches returns the number of requests for the keys.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Claims returns the claims of a token that is valid for a minute.
func (i *Issuer) Claims(subject string, groups ...string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.URL, "aud": []string{"others", Audience}, "sub": subject, "groups": groups,
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
}

// Token returns a token that is valid for a minute.
func (i *Issuer) Token(subject string, groups ...string) string {
	i.t.Helper()
	return i.Sign(i.Claims(subject, groups...))
}

// Sign signs claims with the newest key.
func (i *Issuer) Sign(claims map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	key := i.keys[len(i.keys)-1]
	i.mu.Unlock()
	return Sign(i.t, key.Key, key.Algorithm, map[string]any{"kid": key.KeyID, "typ": "JWT"}, claims)
}

// Sign signs claims with any key.
func Sign(t testing.TB, key any, algorithm string, head, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for name, value := range head {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
