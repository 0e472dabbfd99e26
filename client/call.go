package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// How a call is repeated.
const (
	backoffMin = 20 * time.Millisecond // doubled for each try, with jitter
	backoffMax = time.Second
	// tryTimeoutMin is the least that one try gets. Otherwise it gets half of
	// what the call has left, so that a node that hangs leaves time for another.
	tryTimeoutMin = 100 * time.Millisecond
	tryTimeoutMax = 30 * time.Second
	// redirectsMax is how many redirects in a row are followed without a pause:
	// while leadership changes, two nodes may name each other.
	redirectsMax = 2
)

// Request is a call of the HTTP API, for Client.Do.
type Request struct {
	Method string // GET, POST, ...
	Path   string // as /api/tasks?limit=10, percent-encoded
	Body   []byte // JSON; nil: none. It must not change until Do has returned
	// Repeatable says that the server recognizes a repeat (by idempotency key,
	// claim request id or claim token), or that a repeat does no harm. GETs are
	// always repeatable.
	Repeatable bool
}

// Do makes a call that has no method of its own, or whose JSON is wanted as
// the server sent it, and returns the body of the successful answer. The call
// is repeated like any other. Errors: as of every call, an *Error for a
// refusal.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// answer is what a call came to.
type answer struct {
	body []byte // of the successful answer
	// firstSentAt and sentAt are when the first and the last try began, before
	// anything was sent, with monotonic readings.
	firstSentAt, sentAt time.Time
	tries               int
	// doubted is true if an earlier try may have been done, or may still be.
	doubted bool
}

// verdict is what one try came to.
type verdict int

const (
	settled    verdict = iota // answered: success, or a refusal that will not change
	redirected                // nothing was written; another node leads
	unwritten                 // nothing was written; it may work later or elsewhere
	unknown                   // it may have been done
)

// outcome is what one try came to, with its details.
type outcome struct {
	verdict  verdict
	err      error         // nil only for a success or a redirect
	wait     time.Duration // what the server asks to wait for
	location string        // where redirected to
}

// call makes the request until it is settled or its time is over. The answer
// is set on errors too, but for its body.
func (c *Client) call(ctx context.Context, r Request) (answer, error) {
	var a answer
	if err := c.begin(); err != nil {
		return a, err
	}
	defer c.running.Done()
	ctx, end := c.bound(ctx)
	defer end()
	redirects := 0
	var before error // of the try before
	for {
		now := time.Now()
		base, redirect := c.nodes.pick(now)
		a.tries++
		a.sentAt = now
		if a.tries == 1 {
			a.firstSentAt = now
		}
		o := c.try(ctx, base, r, redirect, &a)
		switch o.verdict {
		case settled:
			return a, o.err
		case redirected:
			if redirects++; redirects <= redirectsMax && c.nodes.follow(base, o.location) {
				c.logger.Debug("claimq: following the leader", "leader", o.location)
				continue
			}
			redirects = 0
			c.nodes.shun(time.Now())
			o.err = fmt.Errorf("%s redirects to %q", base, o.location)
		case unknown:
			if r.Method != http.MethodGet {
				a.doubted = true
				if !r.Repeatable {
					return a, giveUp(a, o.err, nil)
				}
			}
			c.nodes.failed(base, time.Now())
		case unwritten:
			// Another node would count alike, or pass it on to the same leader.
			if !errors.Is(o.err, ErrRateLimited) && !errors.Is(o.err, ErrOverloaded) {
				c.nodes.failed(base, time.Now())
			}
		}
		if ctx.Err() != nil && before != nil {
			o.err = before // that this try was cut off says nothing of the server
		}
		before = o.err
		if err := pause(ctx, a.tries, o.wait); err != nil {
			return a, giveUp(a, o.err, err)
		}
		c.logger.Debug("claimq: repeating", "method", r.Method, "path", r.Path, "node", base, "err", o.err)
	}
}

// giveUp makes the error of a call that was not settled: last is that of its
// last try, ended why there is no other, nil if there may be none.
func giveUp(a answer, last, ended error) error {
	err := last
	if ended != nil {
		err = fmt.Errorf("%w, given up after %d tries: %w", last, a.tries, ended)
	}
	if a.doubted && !errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// errNoTime is returned when the pause that is due would outlast the call.
var errNoTime = fmt.Errorf("no time is left for another try: %w", context.DeadlineExceeded)

// pause waits before the next try: at least as long as the server asks, else
// twice as long as the last time, less a random share of up to a half. It
// returns at once why there will be no next try.
func pause(ctx context.Context, tries int, asked time.Duration) error {
	d := backoffMax
	if shift := tries - 1; shift < 6 {
		d = min(backoffMin<<shift, backoffMax)
	}
	d -= rand.N(d/2 + 1)
	if asked > 0 {
		d += asked // the random share is what keeps clients apart
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return errNoTime
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended returns why ctx has ended: its error, and its cause if that is another.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// try sends the request once. It sets a.body on success.
func (c *Client) try(ctx context.Context, base string, r Request, redirect bool, a *answer) outcome {
	tryCtx, cancel := context.WithTimeout(ctx, tryTimeout(ctx))
	defer cancel()
	var sent atomic.Bool // a connection was there, so bytes may have left
	tryCtx = httptrace.WithClientTrace(tryCtx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	req, err := c.newRequest(tryCtx, base, r, redirect)
	if err != nil {
		return outcome{verdict: settled, err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return broken(ctx, sent.Load(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax+1))
	if err != nil {
		return broken(ctx, true, fmt.Errorf("read answer: %w", err))
	}
	if len(body) > answerBytesMax {
		// A repeat would have the same answer.
		err := fmt.Errorf("the answer has more than %d bytes", answerBytesMax)
		if r.Method != http.MethodGet {
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return outcome{verdict: settled, err: err}
	}
	return judge(resp, body, a)
}

func tryTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return tryTimeoutMax
	}
	return min(max(time.Until(deadline)/2, tryTimeoutMin), tryTimeoutMax)
}

func (c *Client) newRequest(ctx context.Context, base string, r Request, redirect bool) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "claimq-go")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.apiKey != "" {
		req.Header.Set("X-API-Key", c.apiKey)
	}
	if redirect {
		req.Header.Set("X-Claimq-Redirect", "1")
	}
	return req, nil
}

// broken is the outcome of a try without a whole answer.
func broken(ctx context.Context, sent bool, err error) outcome {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err) // ErrStoreClosed, say
	}
	if sent {
		return outcome{verdict: unknown, err: err}
	}
	return outcome{verdict: unwritten, err: err}
}

// judge decides what a whole answer means.
func judge(resp *http.Response, body []byte, a *answer) outcome {
	var head wire.Refusal
	isJSON := json.Unmarshal(body, &head) == nil
	status := resp.StatusCode
	switch {
	case status >= 200 && status < 300 && isJSON && head.Success:
		a.body = body
		return outcome{verdict: settled}
	case status < 300:
		return outcome{verdict: unknown, err: fmt.Errorf("the answer is not claimq's: status %d", status)}
	case status == http.StatusTemporaryRedirect:
		return outcome{verdict: redirected, location: resp.Header.Get("Location")}
	case status < 400:
		return outcome{verdict: settled, err: fmt.Errorf("the answer is not claimq's: status %d to %q", status, resp.Header.Get("Location"))}
	}
	refusal := &Error{
		Status: status, Code: string(head.Code), Text: head.Error, Advice: head.Message,
		RequestID: head.RequestID, RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
	}
	if isJSON {
		refusal.Details = body
	}
	if refusal.Text == "" {
		refusal.Text = http.StatusText(status)
	}
	o := outcome{verdict: settled, err: refusal, wait: refusal.RetryAfter}
	switch {
	case status < 500 && status != http.StatusTooManyRequests:
	case head.Code == wire.CodeInternal: // final: the server logged it
	case head.Code == wire.CodeOutcomeUnknown, head.Code == "" && status >= 500:
		o.verdict = unknown
	default: // 429, and what a node of ours answers with 503
		o.verdict = unwritten
	}
	return o
}

// retryAfter parses the header's seconds; the form with a date is not ours.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 || seconds > 86_400 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
