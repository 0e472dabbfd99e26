package oidc_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/internal/oidc"
	"github.com/claimq/claimq/internal/oidc/oidctest"
	"github.com/claimq/claimq/internal/testwait"
)

// open opens an issuer like a server, and waits until it has keys.
func open(t *testing.T, at *oidctest.Issuer, options ...func(*oidc.Config)) *oidc.Issuer {
	t.Helper()
	i := openSoon(t, at, options...)
	waitFor(t, func() bool { return i.Stats(time.Now()).Fetched > 0 })
	return i
}

func openSoon(t *testing.T, at *oidctest.Issuer, options ...func(*oidc.Config)) *oidc.Issuer {
	t.Helper()
	cfg := oidc.Config{URL: at.URL, Audience: oidctest.Audience, Algorithms: []string{"ES256"}, LifetimeMax: time.Hour}
	for _, option := range options {
		option(&cfg)
	}
	i, err := oidc.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	testwait.Until(t, "what is to be", ok)
}

func with(claims map[string]any, name string, value any) map[string]any {
	if value == nil {
		delete(claims, name)
	} else {
		claims[name] = value
	}
	return claims
}

// The required and the forbidden contents of a token.
func TestIssuer_Check(t *testing.T) {
	t.Parallel()
	at, other := oidctest.New(t), oidctest.New(t)
	i := open(t, at)
	now := time.Now()
	claims := func() map[string]any { return at.Claims("s") }
	public, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(&public.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	at.Add(public, "ES256")
	if _, err := i.Check([]byte(at.Token("s")), now); !errors.Is(err, oidc.ErrNoKeys) {
		t.Fatalf("a key that is not known yet: %v", err)
	}
	waitFor(t, func() bool { return i.Stats(now).Keys == 2 })
	good := at.Token("s")
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k2"}`))
	cases := map[string]struct {
		token string
		want  error
	}{
		"good":                    {good, nil},
		"one audience":            {at.Sign(with(claims(), "aud", oidctest.Audience)), nil},
		"of an access token":      {oidctest.Sign(t, public, "ES256", map[string]any{"kid": "k2", "typ": "at+JWT"}, claims()), nil},
		"without a type":          {oidctest.Sign(t, public, "ES256", map[string]any{"kid": "k2"}, claims()), nil},
		"without iat":             {at.Sign(with(claims(), "iat", nil)), nil},
		"expired":                 {at.Sign(with(claims(), "exp", now.Unix()-1)), oidc.ErrExpired},
		"without exp":             {at.Sign(with(claims(), "exp", nil)), oidc.ErrMalformed},
		"for ever":                {at.Sign(with(claims(), "exp", 1e300)), oidc.ErrMalformed},
		"before all time":         {at.Sign(with(claims(), "exp", -1)), oidc.ErrMalformed},
		"exp that is a text":      {at.Sign(with(claims(), "exp", "tomorrow")), oidc.ErrMalformed},
		"valid later":             {at.Sign(with(claims(), "nbf", now.Unix()+600)), oidc.ErrEarly},
		"of the future":           {at.Sign(with(claims(), "iat", now.Unix()+600)), oidc.ErrEarly},
		"for two hours":           {at.Sign(with(claims(), "exp", now.Unix()+7200)), oidc.ErrLifetime},
		"for two hours, no iat":   {at.Sign(with(with(claims(), "exp", now.Unix()+7200), "iat", nil)), oidc.ErrLifetime},
		"for another audience":    {at.Sign(with(claims(), "aud", "others")), oidc.ErrAudience},
		"without an audience":     {at.Sign(with(claims(), "aud", nil)), oidc.ErrAudience},
		"of another issuer":       {other.Token("s"), oidc.ErrIssuer},
		"without an issuer":       {at.Sign(with(claims(), "iss", nil)), oidc.ErrIssuer},
		"an issuer with a slash":  {at.Sign(with(claims(), "iss", at.URL+"/")), oidc.ErrIssuer},
		"about nobody":            {at.Sign(with(claims(), "sub", "")), oidc.ErrMalformed},
		"another's signature":     {other.Sign(claims()), oidc.ErrSignature},
		"a signature that broke":  {good[:len(good)-8] + "AAAAAAAA", oidc.ErrSignature},
		"other claims":            {parts[0] + "." + base64.RawURLEncoding.EncodeToString(marshal(t, with(claims(), "sub", "root"))) + "." + parts[2], oidc.ErrSignature},
		"not signed":              {none + "." + parts[1] + ".", oidc.ErrAlgorithm},
		"not signed, a signature": {none + "." + parts[1] + "." + parts[2], oidc.ErrAlgorithm},
		"HS256 by a public key":   {oidctest.Sign(t, pkix, "HS256", map[string]any{"kid": "k2"}, claims()), oidc.ErrAlgorithm},
		"HS256 by its PEM":        {oidctest.Sign(t, bytes.Repeat(pkix, 2), "HS256", map[string]any{"kid": "k2"}, claims()), oidc.ErrAlgorithm},
		"without a kid, of two":   {oidctest.Sign(t, public, "ES256", nil, claims()), oidc.ErrSignature},
		"that logs out":           {oidctest.Sign(t, public, "ES256", map[string]any{"kid": "k2", "typ": "logout+jwt"}, claims()), oidc.ErrMalformed},
		"two parts":               {parts[0] + "." + parts[1], oidc.ErrMalformed},
		"nothing":                 {"", oidc.ErrMalformed},
		"only dots":               {"..", oidc.ErrAlgorithm},
		"no JSON":                 {parts[0] + ".e30x." + parts[2], oidc.ErrMalformed},
		"a huge one":              {at.Sign(with(claims(), "groups", strings.Repeat("g", oidc.TokenBytesMax))), oidc.ErrMalformed},
	}
	now = time.Now() // when all tokens have been issued
	for name, c := range cases {
		claims, err := i.Check([]byte(c.token), now)
		if !errors.Is(err, c.want) || (err == nil) != (claims != nil) || err == nil && (claims.Subject != "s" || claims.ExpiresAt.Before(now)) {
			t.Errorf("%s: %v (%v), want %v", name, err, claims, c.want)
		}
	}
}

// A made-up token takes little stack, no matter where it is nested.
func TestIssuer_CheckDeep(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	kid := at.Add(key, "ES256")
	i := open(t, at)
	nested := func(levels int) any {
		return json.RawMessage(`["\"]",` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels))
	}
	head := func(levels int) string {
		return oidctest.Sign(t, key, "ES256", map[string]any{"kid": kid, "x": nested(levels)}, at.Claims("s"))
	}
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"claims":            {at.Sign(with(at.Claims("s"), "x", nested(63))), nil},
		"a header":          {head(63), nil},
		"claims that are":   {at.Sign(with(at.Claims("s"), "x", nested(64))), oidc.ErrMalformed},
		"a header that is":  {head(64), oidc.ErrMalformed},
		"a header, by much": {head(2000), oidc.ErrMalformed},
	} {
		if _, err := i.Check([]byte(c.token), time.Now()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An issuer's clock may be a little off.
func TestIssuer_Leeway(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t)
	i := open(t, at, func(c *oidc.Config) { c.Leeway = 30 * time.Second })
	now := time.Now()
	for _, c := range []map[string]any{
		with(at.Claims("s"), "exp", now.Unix()-20), with(at.Claims("s"), "nbf", now.Unix()+20), with(at.Claims("s"), "iat", now.Unix()+20),
	} {
		if _, err := i.Check([]byte(at.Sign(c)), now); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := i.Check([]byte(at.Sign(with(at.Claims("s"), "exp", now.Unix()-40))), now); !errors.Is(err, oidc.ErrExpired) {
		t.Error(err)
	}
}

// Each kind of key works with its own algorithms, if they are allowed.
func TestIssuer_Algorithms(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKID, edKID := at.Add(rsaKey, ""), at.Add(edKey, "EdDSA")
	all := open(t, at, func(c *oidc.Config) { c.Algorithms = oidc.Algorithms() })
	few := open(t, at)
	for _, c := range []struct {
		key            any
		algorithm, kid string
	}{{rsaKey, "RS256", rsaKID}, {rsaKey, "RS512", rsaKID}, {rsaKey, "PS256", rsaKID}, {rsaKey, "PS256", ""}, {edKey, "EdDSA", edKID}} {
		head := map[string]any{"kid": c.kid}
		if c.kid == "" {
			head = nil
		}
		token := []byte(oidctest.Sign(t, c.key, c.algorithm, head, at.Claims("s")))
		if _, err := all.Check(token, time.Now()); err != nil {
			t.Errorf("%s: %v", c.algorithm, err)
		}
		if _, err := few.Check(token, time.Now()); !errors.Is(err, oidc.ErrAlgorithm) {
			t.Errorf("%s where only ES256 is allowed: %v", c.algorithm, err)
		}
	}
	if _, err := all.Check([]byte(oidctest.Sign(t, rsaKey, "RS256", map[string]any{"kid": edKID}, at.Claims("s"))), time.Now()); !errors.Is(err, oidc.ErrNoKeys) {
		t.Errorf("RS256 by the kid of an Ed25519 key: %v", err)
	}
}

// Made-up tokens cause a fetch of the keys only once in a while, by which rotated keys are
// found. Keys that are gone are not trusted.
func TestIssuer_UnknownKID(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t)
	i := open(t, at)
	now := time.Now()
	before := []byte(at.Sign(with(at.Claims("s"), "iat", now.Unix()-30)))
	old, err := i.Check(before, now)
	if err != nil {
		t.Fatal(err)
	}
	at.Rotate()
	rotated := []byte(at.Token("s"))
	now = time.Now() // the token may be of the next second
	if _, err := i.Check(rotated, now); !errors.Is(err, oidc.ErrNoKeys) {
		t.Fatalf("a new key: %v", err)
	}
	waitFor(t, func() bool { return i.Stats(now).Fetched == 2 })
	waitFor(t, func() bool { _, err := i.Check(rotated, now); return err == nil })
	if err := i.Trusts(old.Signer, now); !errors.Is(err, oidc.ErrSignature) {
		t.Errorf("a key that is no more: %v", err)
	}
	for range 100 {
		if _, err := i.Check(before, now.Add(9*time.Second)); !errors.Is(err, oidc.ErrSignature) {
			t.Fatalf("a key that is no more: %v", err)
		}
	}
	if n := at.Fetches(); n != 2 {
		t.Fatalf("%d fetches", n)
	}
	if _, err := i.Check(before, now.Add(11*time.Second)); !errors.Is(err, oidc.ErrNoKeys) {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return i.Stats(now).Fetched == 3 })
}

// Made-up tokens can influence when the keys are fetched, but not whether tokens of a newer
// key are accepted: such a token is younger than the keys.
func TestIssuer_YoungToken(t *testing.T) {
	t.Parallel()
	at, other := oidctest.New(t), oidctest.New(t)
	other.Rotate() // to a kid that the issuer does not have
	i := open(t, at)
	mallory := []byte(other.Sign(at.Claims("mallory")))
	now := time.Now()
	if _, err := i.Check(mallory, now); !errors.Is(err, oidc.ErrNoKeys) {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return i.Stats(now).Fetched == 2 })
	at.Rotate()
	then := time.Now()
	old := []byte(at.Sign(with(at.Claims("s"), "iat", then.Unix()-30)))
	waitFor(t, func() bool { _, err := i.Check(old, then); return errors.Is(err, oidc.ErrSignature) })
	young := []byte(at.Sign(with(at.Claims("s"), "iat", then.Unix())))
	if _, err := i.Check(young, then); !errors.Is(err, oidc.ErrNoKeys) {
		t.Errorf("a token of a key that is newer than those that are there: %v", err)
	}
	if _, err := i.Check(young, then.Add(11*time.Second)); !errors.Is(err, oidc.ErrNoKeys) {
		t.Error(err)
	}
	waitFor(t, func() bool { _, err := i.Check(young, then); return err == nil })
}

// An issuer that cannot be reached stops nothing: not the start, and later its keys can be
// used for a day.
func TestIssuer_Down(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t)
	at.SetDown(true)
	i := openSoon(t, at)
	waitFor(t, func() bool { return i.Stats(time.Now()).Failed == 1 })
	token := []byte(at.Token("s"))
	if _, err := i.Check(token, time.Now()); !errors.Is(err, oidc.ErrNoKeys) {
		t.Fatal(err)
	}
	at.SetDown(false)
	waitFor(t, func() bool { _, err := i.Check(token, time.Now()); return err == nil })
	now := time.Now()
	at.SetDown(true)
	at.Rotate()
	rotated := []byte(at.Token("s"))
	if _, err := i.Check(rotated, now); !errors.Is(err, oidc.ErrNoKeys) {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return i.Stats(now).Failed == 2 })
	if _, err := i.Check(rotated, now); !errors.Is(err, oidc.ErrNoKeys) {
		t.Errorf("a key that may be there, while the issuer is not: %v", err)
	}
	claims, err := i.Check(token, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Trusts(claims.Signer, now.Add(23*time.Hour)); err != nil {
		t.Error(err)
	}
	if err := i.Trusts(claims.Signer, now.Add(25*time.Hour)); !errors.Is(err, oidc.ErrNoKeys) {
		t.Error(err)
	}
}

// The answers of an issuer are bounded, and bad keys do not replace good ones.
func TestIssuer_BadKeys(t *testing.T) {
	t.Parallel()
	weak, err := json.Marshal(map[string]any{"kty": "oct", "k": "AAAA", "kid": "k1"})
	if err != nil {
		t.Fatal(err)
	}
	many := []byte(`{"keys":[` + strings.TrimSuffix(strings.Repeat("{},", 101), ",") + `]}`)
	for name, body := range map[string][]byte{
		"huge": bytes.Repeat([]byte(" "), 1<<20), "no JSON": []byte("<html>"), "none": []byte(`{"keys":[]}`),
		"a secret": []byte(`{"keys":[` + string(weak) + `]}`), "many": many, "other": []byte(`[]`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := oidctest.New(t)
			i := open(t, at)
			token := []byte(at.Token("s"))
			now := time.Now() // after the token's time, which is whole seconds
			at.SetKeys(body)
			unknown := oidctest.New(t)
			if _, err := i.Check([]byte(unknown.Sign(with(at.Claims("s"), "x", 1))), now); err == nil {
				t.Fatal("another's key is taken")
			}
			at.Rotate()
			if _, err := i.Check([]byte(at.Token("s")), now); !errors.Is(err, oidc.ErrNoKeys) {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return i.Stats(now).Failed == 1 })
			if _, err := i.Check(token, now); err != nil {
				t.Error(err)
			}
		})
	}
}

// An issuer with https is never asked without it, not even on this machine, where any user
// may listen.
func TestIssuer_Redirect(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k1"}}}
	var secure *httptest.Server
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jwks" {
			_ = json.NewEncoder(w).Encode(keys) // the client sees it cut short
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, secure.URL, secure.URL+"/jwks")
	}))
	t.Cleanup(plain.Close)
	secure = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	certstest.Put(t, caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	i, err := oidc.Open(oidc.Config{URL: secure.URL, Audience: oidctest.Audience, Algorithms: oidc.Algorithms(), CAFile: caFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	waitFor(t, func() bool { s := i.Stats(time.Now()); return s.Fetched+s.Failed > 0 })
	if s := i.Stats(time.Now()); s.Fetched > 0 {
		t.Errorf("keys were taken that came by http: %+v", s)
	}
}

// New authorities for the issuer's certificate are used once the file has them.
func TestIssuer_authoritiesAgain(t *testing.T) {
	t.Parallel()
	before, after := certstest.NewAuthority(t, "before"), certstest.NewAuthority(t, "after")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var server *httptest.Server
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jwks" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k1"}}})
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, server.URL, server.URL+"/jwks")
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{after.Issue([]string{"127.0.0.1"}).TLS(t)}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // net/http takes no other
	server.StartTLS()
	t.Cleanup(server.Close)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	certstest.Put(t, caFile, before.PEM())
	i, err := oidc.Open(oidc.Config{URL: server.URL, Audience: oidctest.Audience, Algorithms: oidc.Algorithms(), CAFile: caFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	waitFor(t, func() bool { return i.Stats(time.Now()).Failed > 0 })
	certstest.Put(t, caFile, []byte("in the midst of being written"))
	waitFor(t, func() bool { return i.Stats(time.Now()).Failed > 1 })
	certstest.Put(t, caFile, after.PEM())
	waitFor(t, func() bool { return i.Stats(time.Now()).Fetched > 0 })
}

func TestClaims_Texts(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t)
	i := open(t, at)
	token := at.Claims("s", "a", "b c")
	token["realm_access"] = map[string]any{"roles": []any{"x", 1, nil, "y"}, "a.b": map[string]any{"c": "deep"}}
	token["https://example.org/roles"] = "one two"
	token["scope"] = "openid claimq"
	claims, err := i.Check([]byte(at.Sign(token)), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"groups": {"a", "b c"}, "realm_access.roles": {"x", "y"}, "realm_access.a.b.c": {"deep"}, "https://example.org/roles": {"one two"},
		"scope": {"openid", "claimq"}, "realm_access": nil, "realm_access.none": nil, "none": nil, "exp": nil, "groups.a": nil, "": nil, ".": nil,
	} {
		if got := claims.Texts(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	good := oidc.Config{URL: "https://127.0.0.1:1", Audience: "a", Algorithms: []string{"RS256"}}
	for name, change := range map[string]func(*oidc.Config){
		"http":            func(c *oidc.Config) { c.URL = "http://login.example.org" },
		"no scheme":       func(c *oidc.Config) { c.URL = "login.example.org" },
		"a query":         func(c *oidc.Config) { c.URL += "/?a=b" },
		"a fragment":      func(c *oidc.Config) { c.URL += "/#" },
		"a user":          func(c *oidc.Config) { c.URL = "https://a:b@login.example.org" },
		"no audience":     func(c *oidc.Config) { c.Audience = "" },
		"no algorithm":    func(c *oidc.Config) { c.Algorithms = nil },
		"HS256":           func(c *oidc.Config) { c.Algorithms = []string{"HS256"} },
		"none":            func(c *oidc.Config) { c.Algorithms = []string{"none"} },
		"negative leeway": func(c *oidc.Config) { c.Leeway = -1 },
	} {
		cfg := good
		change(&cfg)
		if i, err := oidc.Open(cfg); err == nil {
			i.Close()
			t.Errorf("%s: it is taken", name)
		}
	}
	i, err := oidc.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	i.Close()
	i.Close()
}

// FuzzIssuer_Check ensures that no input is accepted, or causes more than an error.
func FuzzIssuer_Check(f *testing.F) {
	at := oidctest.New(f)
	i, err := oidc.Open(oidc.Config{URL: at.URL, Audience: oidctest.Audience, Algorithms: oidc.Algorithms()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(i.Close)
	other := oidctest.New(f)
	waitFor(f, func() bool { return i.Stats(time.Now()).Fetched > 0 })
	f.Add([]byte(other.Token("s")))
	f.Add([]byte(other.Sign(at.Claims("s"))))
	f.Add([]byte("eyJhbGciOiJub25lIn0..AA"))
	f.Add([]byte("a.b.c"))
	f.Fuzz(func(t *testing.T, token []byte) {
		if claims, err := i.Check(token, time.Now()); err == nil {
			t.Errorf("%q is taken: %v", token, claims)
		}
	})
}
