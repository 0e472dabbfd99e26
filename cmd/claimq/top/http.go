package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// answerBytesMax bounds an answer. An answer with 10,000 types or workers is smaller.
const answerBytesMax = 24 << 20

// Refusal is an answer without success.
type Refusal struct {
	Base       string // the node's URL
	Status     int
	Code       wire.Code // "": no claimq node answered
	Text       string
	Advice     string
	RetryAfter time.Duration
}

func (r *Refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("%s: status %d: it is not claimq that answered", r.Base, r.Status)
	}
	return fmt.Sprintf("%s (%s)", r.Text, r.Code)
}

// elsewhere reports whether another node may answer better.
func (r *Refusal) elsewhere() bool { return r.Code == "" || r.Code == wire.CodeShuttingDown }

// isRefusal reports whether a claimq node has answered, even with a refusal.
func isRefusal(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code != ""
}

// refused reports whether err is a refusal with the status.
func refused(err error, status int) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Status == status
}

// get asks one node, for at most the source's timeout. It returns the whole body of a success. If the body is too
// large, it returns its beginning with an error.
func (s *Source) get(ctx context.Context, base, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", "claimq-top")
	if s.cfg.APIKey != nil {
		if key := s.cfg.APIKey(); key != "" {
			req.Header.Set("X-API-Key", key)
		}
	}
	resp, err := s.http.Do(req)
	if err != nil {
		var wrapped *url.Error // it repeats the whole URL
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("%s: %w", base, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: read answer: %w", base, err)
	case len(body) > answerBytesMax:
		return body, fmt.Errorf("%s: the answer has more than %d bytes", base, answerBytesMax)
	}
	if limit, err := strconv.Atoi(resp.Header.Get("RateLimit-Limit")); err == nil && limit > 0 {
		s.perMinute = limit
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusalOf(base, resp, body)
	}
	return body, nil
}

func refusalOf(base string, resp *http.Response, body []byte) error {
	var r wire.Refusal
	_ = json.Unmarshal(body, &r) // a proxy's page has no code
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		seconds = 0
	}
	return &Refusal{
		Base: base, Status: resp.StatusCode, Code: r.Code, Text: r.Error, Advice: r.Message,
		RetryAfter: time.Duration(seconds) * time.Second,
	}
}
