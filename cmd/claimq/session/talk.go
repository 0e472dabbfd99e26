package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// Talk makes the calls of one command.
type Talk struct {
	App    *term.App
	Flags  *Flags
	Client *client.Client
}

// NoEndpoint returns the error for a command whose --endpoint is empty.
func NoEndpoint() error {
	return term.UsageErrorf("--endpoint is empty: give the URL of a node, as http://127.0.0.1:7400")
}

// With runs fn with a client of the endpoints.
func With(a *term.App, f *Flags, fn func(s Talk) error) error {
	var endpoints []string
	for _, e := range f.Endpoints {
		if e = strings.TrimSpace(e); e != "" {
			endpoints = append(endpoints, e)
		}
	}
	if len(endpoints) == 0 {
		return NoEndpoint()
	}
	if _, err := f.TLS.Renewed(); err != nil {
		return term.UsageErrorf("%w", err) // the error names the flags
	}
	logger := newRetryNotice(a, f.Timeout)
	if f.Outages != nil {
		logger = slog.New(f.Outages)
	}
	c, err := client.New(client.Config{
		Endpoints: endpoints, APIKey: f.APIKey, APIKeyFile: f.KeyFile, Timeout: f.Timeout, Logger: logger,
		CAFile: f.TLS.caFile, CertFile: f.TLS.certFile, KeyFile: f.TLS.keyFile,
	})
	if err != nil {
		return term.UsageErrorf("%w", err)
	}
	defer c.Close()
	return term.AskedAt(endpoints, fn(Talk{App: a, Flags: f, Client: c}))
}

// Call makes a call and decodes the answer. With --output json it prints the server's JSON, also for a refusal;
// if shown is true, the command should print nothing more.
func (s Talk) Call(ctx context.Context, r Request, answer any) (shown bool, err error) {
	body, err := s.Do(ctx, r, answer)
	shown, showErr := s.ShowJSON(body, err)
	if err == nil {
		err = showErr
	}
	return shown, err
}

// Do makes a call and decodes the answer; it also returns the server's JSON unchanged.
func (s Talk) Do(ctx context.Context, r Request, answer any) ([]byte, error) {
	body, err := s.Client.Do(ctx, r.Request)
	if err != nil {
		return nil, &term.CallError{Err: err, Unknown: r.Unknown}
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return body, fmt.Errorf("decode the server's answer: %w", err)
	}
	return body, nil
}

// ShowJSON prints the server's answer with --output json: body, or the refusal in err. It reports whether body was
// printed.
func (s Talk) ShowJSON(body []byte, err error) (shown bool, showErr error) {
	if s.Flags.Output != "json" {
		return false, nil
	}
	if body != nil {
		_, showErr := fmt.Fprintf(s.App.Stdout, "%s\n", term.SafeJSON(body))
		return showErr == nil, showErr
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && refusal.Details != nil {
		_, showErr = fmt.Fprintf(s.App.Stdout, "%s\n", term.SafeJSON(refusal.Details))
	}
	return false, showErr
}
