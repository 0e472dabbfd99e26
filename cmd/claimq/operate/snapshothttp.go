package operate

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const (
	// transferRetry is the pause before the next node is tried.
	transferRetry = 500 * time.Millisecond
	// transferRedirects bounds how often a node may redirect one request.
	transferRedirects = 3
	transferDial      = 5 * time.Second
	// transferSilence bounds how long a node may neither send nor take bytes, and how long it may take to ask for a
	// body. A paused process keeps its connections, and another node may answer.
	transferSilence = 15 * time.Second
	// transferAnswer bounds the wait for an answer after the node has the whole body. A node may take this long for a
	// restore.
	transferAnswer = time.Hour
	refusalBytes   = 1 << 20
)

// transfer makes requests that carry a whole backup in the body or the answer. The client would read all of it into
// memory.
type transfer struct {
	f    *session.Flags
	key  func() string // "": no key
	http *http.Client

	silence time.Duration // transferSilence except in tests
}

func newTransfer(f *session.Flags) (*transfer, error) {
	files, err := f.TLS.Renewed()
	if err != nil {
		return nil, term.UsageErrorf("%w", err)
	}
	key, err := f.KeySource()
	if err != nil {
		return nil, err
	}
	return &transfer{f: f, key: key, silence: transferSilence, http: &http.Client{
		Transport: files.Transport(func(c *tls.Config) *http.Transport {
			return &http.Transport{
				Proxy:                 http.ProxyFromEnvironment,
				DialContext:           (&net.Dialer{Timeout: transferDial}).DialContext,
				TLSHandshakeTimeout:   transferDial,
				TLSClientConfig:       c,
				ExpectContinueTimeout: transferAnswer, // the silence limit ends the request sooner
				DisableKeepAlives:     true,
				DisableCompression:    true,
			}
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

type transferBody struct {
	size int64
	open func() (io.ReadCloser, error)
}

// try makes the request at one endpoint after another, until one takes it or --timeout has passed. body may be nil.
// The caller closes the answer's body. sent is true if a body was sent without an answer, so the outcome is unknown.
func (t *transfer) try(ctx context.Context, method, path string, body *transferBody) (resp *http.Response, sent bool, err error) {
	deadline := time.Now().Add(t.f.Timeout)
	var refused error // its reason says more than a missing node
	for {
		for _, endpoint := range t.f.Endpoints {
			if endpoint = strings.TrimRight(strings.TrimSpace(endpoint), "/"); endpoint == "" {
				continue
			}
			if err != nil && time.Now().After(deadline) {
				return nil, false, cmp.Or(refused, err)
			}
			var again bool
			resp, sent, again, err = t.follow(ctx, method, endpoint+path, body, deadline)
			if err == nil || !again || sent {
				return resp, sent, err
			}
			if said := (*client.Error)(nil); errors.As(err, &said) {
				refused = err
			}
			if ctx.Err() != nil {
				return nil, false, err
			}
		}
		if err == nil {
			return nil, false, session.NoEndpoint()
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-time.After(transferRetry):
		}
	}
}

// follow makes the request at a URL and follows redirects. again says that another node or a later try may get
// another answer.
func (t *transfer) follow(ctx context.Context, method, target string, body *transferBody, deadline time.Time) (resp *http.Response, sent, again bool, err error) {
	for range transferRedirects {
		if resp, sent, err = t.ask(ctx, method, target, body, deadline); err != nil {
			return nil, sent, true, err
		}
		if resp.StatusCode != http.StatusTemporaryRedirect {
			break
		}
		next, err := redirectTarget(target, resp)
		_ = resp.Body.Close()
		if err != nil {
			return nil, false, false, err
		}
		target = next
	}
	if resp.StatusCode == http.StatusOK {
		return resp, false, false, nil
	}
	defer resp.Body.Close()
	refusal := readRefusal(resp)
	code := wire.Code(refusal.Code)
	again = code == wire.CodeNoLeader || code == wire.CodeShuttingDown || resp.StatusCode == http.StatusTemporaryRedirect
	return nil, false, again, refusal
}

// redirectTarget returns the URL that resp redirects to. It refuses to go from TLS to plain HTTP, because the key
// would then be sent unprotected.
func redirectTarget(from string, resp *http.Response) (string, error) {
	to, err := resp.Location()
	if err != nil {
		return "", err
	}
	was, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	if was.Scheme == "https" && to.Scheme != "https" {
		return "", errors.New("the server sends the request on to " + to.Redacted() + ", which is not https")
	}
	return to.String(), nil
}

// readRefusal turns an answer without success into an error.
func readRefusal(resp *http.Response) *client.Error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, refusalBytes)) // an error leaves what arrived before it
	e := &client.Error{Status: resp.StatusCode, Text: http.StatusText(resp.StatusCode)}
	var refusal wire.Refusal
	if json.Unmarshal(text, &refusal) == nil && refusal.Code != "" {
		e.Code, e.Text, e.Advice, e.RequestID, e.Details = string(refusal.Code), refusal.Error, refusal.Message, refusal.RequestID, text
	}
	return e
}
