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
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/lane"
	"github.com/claimq/claimq/client/internal/nodes"
	"github.com/claimq/claimq/internal/repeat"
)

const (
	// tryTimeoutMin is the least time that one try gets. Otherwise it gets half of what is left of the call, so that
	// there is time for another node if this one hangs.
	tryTimeoutMin = 100 * time.Millisecond
	tryTimeoutMax = 30 * time.Second
	// waitGrace is added to a request's wait for the whole answer to arrive. A node that takes longer hangs.
	waitGrace = 3 * time.Second
)

// Request is a call of the HTTP API, for Client.Do.
type Request struct {
	Method string // GET, POST, ...
	Path   string // as /api/tasks?limit=10, percent-encoded
	Body   []byte // JSON; nil: none. It must not change until Do has returned
	// Repeatable says that the call may be sent again when its answer is lost: the server recognizes a repeat (by
	// idempotency key, claim request id or claim token), or a repeat does no harm. GETs are always repeatable.
	Repeatable bool
	// Wait says how long the server may hold its answer back (wait_ms); until then its silence does not count as a
	// hang. Keep it to a few seconds, because a connection that died silently is noticed only 3 s after it. 0: the
	// server answers at once.
	Wait time.Duration

	// acts is the number of operations in the request; 0: one.
	acts int
	// joined, if not nil, replaces Body in a request that several calls share. Each of these calls counts its own
	// outcome and reads its part of the answer, whose body is pooled.
	joined *lane.Joined
	// prepare, if not nil, makes Body and Wait again for each try.
	prepare func() (body []byte, wait time.Duration, err error)
	// take, if not nil, decodes the body of a successful answer, and reports whether it is whole and says success. It
	// may be called again for another try.
	take func(body []byte) bool
}

// successFirst is the beginning of the server's successful answers.
var successFirst = []byte(`{"success":true`)

// isSuccess reports whether the body of an answer with a status of success is whole and says so too. A proxy's page
// does not.
func (r *Request) isSuccess(body []byte) bool {
	if r.take != nil {
		return r.take(body)
	}
	if bytes.HasPrefix(body, successFirst) {
		return json.Valid(body)
	}
	var head struct {
		Success bool `json:"success"`
	}
	return json.Unmarshal(body, &head) == nil && head.Success
}

// Do makes any call: one that has no method in this package, or one whose JSON the caller wants as the server sent it. It
// returns the body of the successful answer. The call is repeated like any other, and a refusal is an *Error. Errors also
// include ErrOutcomeUnknown, if the call may have been done, and ErrClosed.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// answer is the outcome of a call.
type answer struct {
	body  []byte // of the successful answer
	index uint64 // the log index that the answer reflects; 0: unknown
	// requestID is the server's id of the request that succeeded.
	requestID string
	// firstSentAt and sentAt are when the first and the last try began, taken before anything was sent, with
	// monotonic readings.
	firstSentAt, sentAt time.Time
	repeats             repeat.Call
}

// outcome is the outcome of one try.
type outcome struct {
	verdict  repeat.Verdict
	err      error         // nil only for a success or a redirect
	wait     time.Duration // how long the server asks to wait
	location string        // where redirected to
	heard    bool          // a whole answer came
}

// call makes the request, again and again if need be, until it is settled or its time is over. On errors the answer
// has everything but its body.
func (c *Client) call(ctx context.Context, r Request) (a answer, err error) {
	a.repeats = repeat.Call{Mutation: r.Method != http.MethodGet, Repeatable: r.Repeatable}
	if err := c.begin(); err != nil {
		return a, err
	}
	defer c.running.Done()
	acts := max(r.acts, 1)
	c.counts.acts.Add(int64(acts))
	if r.joined == nil {
		defer func(ctx context.Context) { c.counts.ended(ctx, acts, err) }(ctx)
	}
	ctx, end := c.bound(ctx, r.Wait)
	defer end()
	var before error  // of the last try
	var refused error // of the newest try that a node answered
	var refusedAt int // the try that it is of
	var way route
	for {
		if r.prepare != nil {
			if r.Body, r.Wait, err = r.prepare(); err != nil {
				return a, giveUp(a, fmt.Errorf("encode request: %w", err), nil)
			}
		}
		now := time.Now()
		base, redirect, followed := way.next(c.nodes, now)
		a.sentAt = now
		if a.repeats.Tries == 0 {
			a.firstSentAt = now
		}
		o := c.try(ctx, base, r, redirect, &a)
		if o.heard {
			c.nodes.Answered(base, followed)
		}
		if errors.Is(o.err, ErrUnauthorized) {
			c.closeIdle() // there may be several nodes behind one address
			if way.noteUnknownKey(c.nodes, base) {
				o.verdict = repeat.Unwritten // another node may know the key already
			}
		}
		action := a.repeats.Next(o.verdict)
		if action == repeat.Follow && !way.follow(c.nodes, base, o.location) {
			action = a.repeats.Lost()
		}
		switch action {
		case repeat.Take:
			if refusal := (*Error)(nil); errors.As(o.err, &refusal) && !repeat.Decides(refusal.Status, wire.Code(refusal.Code)) {
				return a, giveUp(a, o.err, nil)
			}
			return a, o.err
		case repeat.Follow:
			c.logger.DebugContext(ctx, "claimq: following the leader", "leader", o.location)
			continue
		case repeat.GiveUp:
			return a, giveUp(a, o.err, nil)
		case repeat.Wait:
			c.leave(base, &o)
		}
		if ctx.Err() != nil && before != nil {
			o.err = before // that this try was cut off tells nothing about the server
		}
		before = o.err
		if said := (*Error)(nil); errors.As(o.err, &said) {
			refused, refusedAt = o.err, a.repeats.Tries
		}
		if err := pause(ctx, &a.repeats, o.wait); err != nil {
			if refused != nil && a.repeats.Tries-refusedAt < len(c.nodes.Endpoints()) {
				o.err = refused // it tells more than that another node is down
			}
			return a, giveUp(a, o.err, err)
		}
		c.counts.repeats.Add(1)
		c.logger.DebugContext(ctx, LogRepeating, "method", r.Method, "path", r.Path, "node", base, "err", o.err)
	}
}

// leave notes what a failed try says about its node. If another node can be asked, the wait that this one asks for is
// skipped, because the other may know the leader, or not be shutting down.
func (c *Client) leave(base string, o *outcome) {
	now := time.Now()
	switch {
	case o.verdict == repeat.Redirected:
		c.nodes.Shun(now)
		o.err = fmt.Errorf("%s redirects to %q", base, o.location)
		return
	case errors.Is(o.err, ErrRateLimited), errors.Is(o.err, ErrOverloaded) && !lacksIssuerKeys(o.err):
		return // another node would count the same, or forward to the same leader
	case !o.heard:
		c.nodes.Silent(base, now)
	default:
		c.nodes.Failed(base, now)
	}
	if o.wait > 0 {
		c.nodes.Hold(base, o.wait, now)
	}
	o.wait = c.nodes.Wait(now)
}

// route says where the tries of one call go.
type route struct {
	to       string   // the leader that a node named, for the next try; "": Nodes decides
	passOn   bool     // the next try lets the node forward the call instead of asking for the leader
	unknowns []string // endpoints that do not know the key
}

// next returns the node for the next try.
func (w *route) next(n *nodes.Nodes, now time.Time) (base string, redirect, followed bool) {
	if w.to != "" {
		base, w.to = w.to, ""
		return base, true, true
	}
	base, redirect = n.Pick(now)
	redirect = redirect && !w.passOn
	w.passOn = false
	return base, redirect, false
}

// follow takes the leader that the node at base named. It returns false if the address is of no use.
func (w *route) follow(n *nodes.Nodes, base, location string) (ok bool) {
	w.to, ok = n.Follow(base, location, time.Now())
	w.passOn = w.to == ""
	return ok
}

// noteUnknownKey notes that the node at base does not know the key. It returns false once every endpoint has said so.
func (w *route) noteUnknownKey(n *nodes.Nodes, base string) bool {
	if slices.Contains(n.Endpoints(), base) && !slices.Contains(w.unknowns, base) {
		w.unknowns = append(w.unknowns, base)
	}
	return len(w.unknowns) < len(n.Endpoints())
}

// lacksIssuerKeys reports whether a node could not check a token because it does not have the issuer's keys. Each node
// fetches them by itself, so another node may have them.
func lacksIssuerKeys(err error) bool {
	var refusal *Error
	var details struct {
		Reason string `json:"reason"`
	}
	return errors.As(err, &refusal) && json.Unmarshal(refusal.Details, &details) == nil && details.Reason == "issuer"
}

// giveUp makes the error of a call that was not settled. last is the error of its last try; ended says why there is
// no further one, nil if none is possible.
func giveUp(a answer, last, ended error) error {
	err := last
	if ended != nil {
		err = fmt.Errorf("%w, given up after %d tries: %w", last, a.repeats.Tries, ended)
	}
	if a.repeats.Doubted && !errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// errNoTime is returned when the next pause would outlast the call.
var errNoTime = fmt.Errorf("no time is left for another try: %w", context.DeadlineExceeded)

// pause waits before the next try: as long as the server asks if there is time for that, else for a quarter of what
// is left, because the server may have asked for more than it needs. If there will be no next try, it returns at once
// with the reason.
func pause(ctx context.Context, call *repeat.Call, asked time.Duration) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	least := call.Pause(0, rand.N[time.Duration])
	d := least + asked
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left < least {
			return errNoTime
		}
		if left < d {
			d = max(left/4, least)
		}
	}
	return waitFor(ctx, d)
}

// ended returns why ctx has ended: its error, with its cause if that differs.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// readAnswer reads the body, or enough of it to show that it is larger than answerBytesMax. A body of known length is
// read into memory of that size, which may be pooled.
func readAnswer(resp *http.Response, pooled bool) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 && n <= answerBytesMax {
		var body []byte
		if pooled {
			body = lane.Alloc(int(n))
		} else {
			body = make([]byte, n)
		}
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(resp.Body, answerBytesMax+1))
}

// try sends the request once. It sets a.body on success.
func (c *Client) try(ctx context.Context, base string, r Request, redirect bool, a *answer) outcome {
	tryCtx, cancel := context.WithTimeout(ctx, tryTimeout(ctx, r.Wait))
	defer cancel()
	var sent, reused atomic.Bool // a connection existed, so bytes may have been sent
	tryCtx = httptrace.WithClientTrace(tryCtx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { sent.Store(true); reused.Store(info.Reused) },
	})
	req, err := c.newRequest(tryCtx, base, r, redirect)
	if err != nil {
		return outcome{verdict: repeat.Settled, err: err}
	}
	hc := c.http
	if r.Wait > 0 {
		hc = c.waiting
	}
	c.counts.requests.Add(1)
	resp, err := hc.Do(req)
	if err != nil {
		return c.broken(ctx, sent.Load(), reused.Load(), err)
	}
	defer resp.Body.Close()
	body, err := readAnswer(resp, r.joined != nil)
	if err != nil {
		return c.broken(ctx, true, reused.Load(), fmt.Errorf("read answer: %w", err))
	}
	if len(body) > answerBytesMax {
		// A repeat would get the same answer.
		err := fmt.Errorf("the answer has more than %d bytes", answerBytesMax)
		if r.Method != http.MethodGet {
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return outcome{verdict: repeat.Settled, err: err, heard: true}
	}
	o := judge(&r, resp, body, a)
	if c.isOutdated(req, o.err) {
		o.verdict = repeat.Unwritten
	}
	return o
}

// isOutdated reports whether a request was refused because of its key, an expired token for example, and the key file
// has another one by now.
func (c *Client) isOutdated(req *http.Request, err error) bool {
	return errors.Is(err, ErrUnauthorized) && c.keyFile != nil && c.keyFile.Changed(req.Header.Get(headerAPIKey))
}

// tryTimeout returns how long a try may take if the server may hold its answer back for wait.
func tryTimeout(ctx context.Context, wait time.Duration) time.Duration {
	most := tryTimeoutMax
	if wait > 0 {
		most = waitGrace
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return wait + most
	}
	return wait + min(max((time.Until(deadline)-wait)/2, tryTimeoutMin), most)
}

// headerAPIKey is the header that carries the key.
const headerAPIKey = "X-API-Key"

// key returns the key to send, or "".
func (c *Client) key() string {
	if c.keyFile != nil {
		return c.keyFile.Key()
	}
	return c.apiKey
}

func (c *Client) newRequest(ctx context.Context, base string, r Request, redirect bool) (*http.Request, error) {
	var body io.Reader
	switch {
	case r.joined != nil:
		body = r.joined.Reader()
	case r.Body != nil:
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if j := r.joined; j != nil {
		req.ContentLength = j.Size()
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(j.Reader()), nil }
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "claimq-go")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key := c.key(); key != "" {
		req.Header.Set(headerAPIKey, key)
	}
	if redirect {
		req.Header.Set("X-Claimq-Redirect", "1")
	}
	// The server ignores a malformed one, but it might make the request itself invalid.
	if trace, ok := ctx.Value(traceparentKey{}).(string); ok && wire.ValidTraceparent([]byte(trace)) {
		req.Header.Set("Traceparent", trace)
	}
	return req, nil
}

// broken is the outcome of a try without a whole answer. reused says that its connection had been used before.
func (c *Client) broken(ctx context.Context, sent, reused bool, err error) outcome {
	if reused && ctx.Err() == nil && isSilence(err) {
		c.closeIdle()
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err) // such as ErrClosed
	}
	return outcome{verdict: repeat.Broken(sent && !nodes.Untrusted(err)), err: err}
}

// judge decides what a whole answer means.
func judge(r *Request, resp *http.Response, body []byte, a *answer) outcome {
	status := resp.StatusCode
	if status >= 200 && status < 300 && r.isSuccess(body) {
		a.body = body
		a.index, _ = strconv.ParseUint(resp.Header.Get("X-Claimq-Index"), 10, 64)
		a.requestID = resp.Header.Get("X-Request-Id")
		return outcome{verdict: repeat.Settled, heard: true}
	}
	location := resp.Header.Get("Location")
	if status == http.StatusTemporaryRedirect && strings.HasSuffix(location, r.Path) {
		return outcome{verdict: repeat.Redirected, location: location, heard: true}
	}
	var head wire.Refusal
	isJSON := json.Unmarshal(body, &head) == nil
	if !isJSON || !isOurs(&head) {
		head = wire.Refusal{} // a proxy's answer: its fields are not ours
	}
	o := outcome{verdict: repeat.Judge(status, head.Code), heard: true}
	switch {
	case status < 300:
		o.err = fmt.Errorf("the answer is not claimq's: status %d", status)
		return o
	case status < 400:
		o.err = fmt.Errorf("the answer is not claimq's: status %d to %q", status, location)
		return o
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
	o.err, o.wait = refusal, refusal.RetryAfter
	return o
}

// isOurs reports whether a refusal comes from a node: its code is known here or, if a newer node sent it, it has all
// fields of a refusal.
func isOurs(head *wire.Refusal) bool {
	return head.Code.Status() != 0 || head.Code != "" && head.Error != "" && head.RequestID != ""
}

// retryAfter parses the header's seconds. The server never sends the form with a date.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 || seconds > 86_400 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
