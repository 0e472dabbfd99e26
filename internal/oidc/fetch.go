package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/claimq/claimq/internal/certs"
)

// redirectsMax bounds the redirects of a request.
const redirectsMax = 3

func newHTTPClient(cfg *Config) (*http.Client, error) {
	files, err := certs.OpenRenewed(&tls.Config{MinVersion: tls.VersionTLS12}, cfg.CAFile, "", "")
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout: fetchTimeout,
		Transport: files.Transport(func(c *tls.Config) *http.Transport {
			return &http.Transport{
				Proxy:                  http.ProxyFromEnvironment, // never for loopback
				TLSClientConfig:        c,
				TLSHandshakeTimeout:    fetchTimeout,
				MaxResponseHeaderBytes: discoveryBytes,
				DisableKeepAlives:      true, // there are minutes between requests
				ForceAttemptHTTP2:      true,
			}
		}),
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > redirectsMax {
				return fmt.Errorf("there are over %d redirects", redirectsMax)
			}
			if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
				return errors.New("the redirect leads away from https://")
			}
			return checkScheme(req.URL)
		},
	}, nil
}

// fetch finds the issuer's keys by discovery.
func (i *Issuer) fetch(ctx context.Context) (*keySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var about struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := i.get(ctx, strings.TrimSuffix(i.cfg.URL, "/")+"/.well-known/openid-configuration", discoveryBytes, &about); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if about.Issuer != i.cfg.URL {
		return nil, errors.New("discovery: the issuer calls itself otherwise than oidc.issuer does, which must be the same to the letter")
	}
	u, err := url.Parse(about.JWKSURI)
	if err != nil || u.Host == "" {
		return nil, errors.New("discovery: jwks_uri is no URL")
	}
	if err := checkScheme(u); err != nil {
		return nil, fmt.Errorf("discovery: jwks_uri: %w", err)
	}
	if u.Scheme == "http" && !strings.HasPrefix(i.cfg.URL, "http:") {
		return nil, errors.New("discovery: jwks_uri: it must begin with https://, as the issuer does")
	}
	var sent jwks
	at := time.Now() // keys that the issuer adds later may be missing
	if err := i.get(ctx, about.JWKSURI, keysBytes, &sent); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	keys, err := newKeySet(&sent, at)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return keys, nil
}

// get decodes the JSON at a URL, of at most most bytes. Its errors contain nothing of it.
func (i *Issuer) get(ctx context.Context, from string, most int64, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache")
	resp, err := i.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s was answered %d", from, resp.StatusCode)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return fmt.Errorf("GET %s was answered with HTML", from)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return fmt.Errorf("GET %s: %w", from, err)
	case int64(len(body)) > most:
		return fmt.Errorf("GET %s was answered with over %d bytes", from, most)
	case json.Unmarshal(body, to) != nil:
		return fmt.Errorf("GET %s was answered with JSON that has no such fields, or with none", from)
	}
	return nil
}
