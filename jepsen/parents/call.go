package parents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
)

const (
	// callTimeout bounds one request: after it the outcome is unknown.
	callTimeout = 5 * time.Second
	// retryPause is how long a caller waits before it asks again.
	retryPause = 30 * time.Millisecond
	// answerBytesMax bounds an answer that is read.
	answerBytesMax = 64 << 20
)

// caller makes requests, one after the other, to the node that it has chosen,
// and to the next one if that does not help. It is for one goroutine.
type caller struct {
	http    *http.Client
	nodes   []string // base URLs
	at      int
	unknown *atomic.Int64 // counts the requests whose outcome was not known
	unsure  bool          // the last call of again was repeated after such a one
}

// refused is an answer that says that nothing was done.
type refused struct {
	code wire.Code
	text string
}

func (r *refused) Error() string { return fmt.Sprintf("%s: %s", r.code, r.text) }

// errOutcome is returned for a request whose outcome is not known.
var errOutcome = errors.New("the outcome is not known")

// errOdd is returned for an answer that is none of the contract's, or a bug's.
var errOdd = errors.New("an odd answer")

// again makes a request until its outcome is known and it is not one to be tried
// later. Errors: a *refused, one of ctx, or errOdd.
func (c *caller) again(ctx context.Context, method, path string, body, answer any) error {
	c.unsure = false
	for {
		err := c.once(ctx, method, path, body, answer)
		var no *refused
		switch {
		case err == nil || errors.Is(err, errOdd):
			return err
		case errors.As(err, &no):
			if no.code != wire.CodeNoLeader && no.code != wire.CodeShuttingDown && no.code != wire.CodeOverloaded {
				return err
			}
		default:
			c.unknown.Add(1)
			c.unsure = true
		}
		c.at = (c.at + 1) % len(c.nodes)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryPause):
		}
	}
}

// once makes one request.
func (c *caller) once(ctx context.Context, method, path string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%w: %w", errOdd, err)
		}
		reader = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.nodes[c.at]+path, reader)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", errOutcome, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errOutcome, err)
	case resp.StatusCode/100 == 2:
		if err := json.Unmarshal(raw, answer); err != nil {
			return fmt.Errorf("%w to %s: %w", errOdd, path, err)
		}
		return nil
	}
	var refusal wire.Refusal
	if json.Unmarshal(raw, &refusal) != nil || refusal.Code.Status() != resp.StatusCode || refusal.Code == wire.CodeInternal {
		return fmt.Errorf("%w to %s: status %d: %.200s", errOdd, path, resp.StatusCode, raw)
	}
	if refusal.Code == wire.CodeOutcomeUnknown {
		return errOutcome
	}
	return &refused{refusal.Code, refusal.Error}
}
