package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/sqs"
	"github.com/claimq/claimq/api/sqs/sigv4"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// SQS configures the endpoint for clients of Amazon SQS.
type SQS struct {
	// URL is the beginning of the URLs of queues, as https://host:port. "": the address that the client has used.
	URL string
	// Account is in the URLs and names of queues, Region in their names.
	Account, Region string
}

// queues is the protocol of SQS on the public port.
type queues struct {
	off bool // calls are refused
	cfg SQS
	tls bool
	// calls has the call of each operation, and last the one for unknown operations.
	calls   [sqs.Ops + 1]*call
	actions *actions
	bodyMax int // bytes of a request's body
	keys    sigv4.Keys
}

// sqsRoles has the roles of operations. An operation that may change settings checks for itself whether it does.
var sqsRoles = [sqs.Ops]door.Roles{
	sqs.SendMessage: door.Producers, sqs.SendMessageBatch: door.Producers,
	sqs.ReceiveMessage: door.Workers, sqs.DeleteMessage: door.Workers, sqs.DeleteMessageBatch: door.Workers,
	sqs.ChangeMessageVisibility: door.Workers, sqs.ChangeMessageVisibilityBatch: door.Workers,
	sqs.CreateQueue: door.EveryRole, sqs.GetQueueURL: door.EveryRole, sqs.ListQueues: door.EveryRole,
	sqs.GetQueueAttributes: door.EveryRole, sqs.ListQueueTags: door.EveryRole,
	sqs.ListDeadLetterSourceQueues: door.EveryRole, sqs.ListMessageMoveTasks: door.EveryRole,
}

// newQueues returns the protocol, and a row for each of its operations, none if it is off. Reads do not count for a
// rate, because clients ask for a queue's URL before each of their calls.
func newQueues(s *Server) (*queues, []call) {
	if s.cfg.SQS == nil {
		return &queues{off: true}, nil
	}
	q := &queues{cfg: *s.cfg.SQS, tls: s.cfg.TLS != nil, actions: s.actions, bodyMax: s.cfg.Limits.BodyBytes}
	rows := make([]call, sqs.Ops+1)
	for op := range sqs.Ops {
		roles, is := sqsRoles[op], mutation|ignoresParams
		switch op {
		case sqs.GetQueueURL, sqs.ListQueues, sqs.GetQueueAttributes, sqs.ListQueueTags, sqs.ListDeadLetterSourceQueues, sqs.ListMessageMoveTasks:
			is = rateFree | ignoresParams
		case sqs.DeleteMessage, sqs.DeleteMessageBatch, sqs.ChangeMessageVisibility, sqs.ChangeMessageVisibilityBatch:
			is |= rateFree
		case sqs.PurgeQueue, sqs.DeleteQueue:
			is |= extraTime
		}
		if roles == 0 {
			roles = door.Operators
		}
		rows[op] = call{name: "sqs_" + snake(op.String()), roles: roles, is: is, answer: q.answer, sqs: true}
	}
	rows[sqs.Ops] = call{name: "sqs_unknown", roles: door.EveryRole, is: answeredHere | ignoresParams, answer: q.answer, sqs: true}
	return q, rows
}

// bind finds the rows in the table of all calls. If the protocol is off, all of its calls share one row, which is
// counted like an unknown path.
func (q *queues) bind(t *table) {
	if q.off {
		refused := *t.none
		refused.roles, refused.is, refused.sqs = door.Anybody, answeredHere|ignoresParams, true
		refused.answer = func(r *request) { q.send(r, sqs.Off()) }
		for i := range q.calls {
			q.calls[i] = &refused
		}
		return
	}
	op := 0
	for _, c := range t.all {
		if c.sqs {
			q.calls[op] = c
			op++
		}
	}
}

// snake returns the name of an operation in the form of the names of calls: SendMessage is send_message.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}

// queueCall is the state of a request of SQS.
type queueCall struct {
	head   sqs.Head
	signed *sigv4.Signature  // nil: none was checked
	bad    *sqs.Error        // why it was not let in
	sum    [sha256.Size]byte // of the body, if summed
	summed bool
}

// bodySum returns the sum of the request's body.
func (c *queueCall) bodySum(r *request) [sha256.Size]byte {
	if !c.summed {
		c.sum, c.summed = sha256.Sum256(r.input()), true
	}
	return c.sum
}

// amzTarget is X-Amz-Target as fasthttp spells it.
const amzTarget = "X-Amz-Target"

// find returns the call of SQS that a request makes. ok is false if it makes none.
func (q *queues) find(r *request, path, query []byte) (t target, ok bool) {
	if len(path) > 1 && (path[1] < '0' || path[1] > '9') {
		return target{}, false // as most are; an account is a number
	}
	in := &r.http.Request
	h, ok := sqs.HeadOf(string(in.Header.Method()), string(path), string(query), string(in.Header.Peek(amzTarget)), in.Body())
	if !ok || q.off && h.Bad != nil {
		return target{}, false
	}
	op := h.Op
	if h.Bad != nil {
		op = sqs.Ops
	}
	return target{call: q.calls[op], queue: &queueCall{head: h}}, true
}

// signer returns the key that a request says it was signed by, before its body is read and the signature can be checked;
// nil if it says none.
func (q *queues) signer(h *fasthttp.RequestHeader, keys *door.Keyring) *door.Caller {
	k, _ := keys.Signer(sigv4.AccessKeyID(string(h.Peek(fasthttp.HeaderAuthorization))))
	return k
}

// authenticate returns the key that signed the request, nil if the server is open. An open server takes any signature,
// and requests without one.
func (q *queues) authenticate(r *request, keys *door.Keyring) (*door.Caller, door.Failure, *refuse.Refusal) {
	c := r.target.queue
	refused := func(why door.Failure, bad *sqs.Error) (*door.Caller, door.Failure, *refuse.Refusal) {
		c.bad = bad
		return nil, why, refuse.New(wire.CodeForbidden, bad.Text, "")
	}
	in := &r.http.Request
	path, query := splitURI(in.Header.RequestURI())
	signed := &sigv4.Request{
		Method: string(in.Header.Method()), Path: string(path), Query: string(query), Header: in.Header.PeekAll,
	}
	signature, err := sigv4.Read(signed)
	switch {
	case err == nil:
		c.signed = signature
	case keys != nil:
		return refused(door.FailMissing, sqs.BadSignature(err))
	}
	if keys == nil {
		if in.Header.IsGet() { // pages can be made to send one
			return refused(door.FailMissing, sqs.NoToken())
		}
		return nil, 0, nil
	}
	k, secret := keys.Signer(signature.AccessKeyID)
	if k == nil {
		return refused(door.FailUnknown, sqs.UnknownClient())
	}
	signed.Sum = c.bodySum(r)
	if err := signature.Verify(signed, secret, r.timing.start, &q.keys); err != nil {
		return refused(door.FailUnknown, sqs.BadSignature(err))
	}
	return k, 0, nil
}

func (q *queues) answer(r *request) {
	c := r.target.queue
	_, query := splitURI(r.http.Request.Header.RequestURI())
	call, bad := sqs.Decode(c.head, string(query), r.http.Request.Body())
	if bad != nil {
		q.send(r, bad)
		return
	}
	if id := r.header("Amz-Sdk-Invocation-Id"); len(id) > 0 {
		call.Repeat = sqs.RepeatOf(r.by(), string(id), call.Op, c.bodySum(r))
	}
	h := &queueHost{queues: q, r: r}
	answer, bad := sqs.Do(h, call)
	switch {
	case bad != nil:
		q.send(r, bad)
	case h.gone && len(r.delivery.holds) > 0:
		r.releaseClaims()
		r.refuseGone()
	case answer != nil:
		r.send(fasthttp.StatusOK, answer.Append(r.sizedBuffer(answer.Room()), &c.head, r.id))
		finishQueueAnswer(&r.http.Response, &c.head, r.id)
	}
}

// finishQueueAnswer sets the headers of an answer.
func finishQueueAnswer(resp *fasthttp.Response, head *sqs.Head, id []byte) {
	resp.Header.SetContentType(head.ContentType())
	resp.Header.SetBytesV("X-Amzn-Requestid", id)
}

// unserved reports whether the leader's answer to a call of SQS is one of its peer port, which did not let the call in:
// it is starting, for example. Its API answers in the protocol.
func unserved(resp *fasthttp.Response) bool {
	return resp.StatusCode() == fasthttp.StatusServiceUnavailable && len(resp.Header.Peek("X-Amzn-Requestid")) == 0
}

// writeQueueError sets the status and the headers of an error. The caller sets the body.
func writeQueueError(resp *fasthttp.Response, head *sqs.Head, bad *sqs.Error, id []byte) {
	finishQueueAnswer(resp, head, id)
	resp.SetStatusCode(bad.Status)
	resp.Header.Set("X-Amzn-Query-Error", bad.QueryError())
	if bad.Retries() {
		resp.Header.Set(fasthttp.HeaderRetryAfter, refuse.RetryAfterS)
		resp.Header.Set("X-Amz-Retry-After", retryAfterMS)
	}
}

// retryAfterMS is refuse.RetryAfterS in the header that SDKs of AWS obey.
const retryAfterMS = "1000"

// send answers with an error.
func (q *queues) send(r *request, bad *sqs.Error) {
	head := &r.target.queue.head
	r.send(bad.Status, bad.Append(r.buffer(), head.Query, r.id))
	writeQueueError(&r.http.Response, head, bad, r.id)
	if r.outcome.code == "" {
		r.outcome.code = wire.CodeInvalidRequest
		if bad.Status == fasthttp.StatusForbidden {
			r.outcome.code = wire.CodeForbidden
		}
	}
}

// refuse answers with a refusal.
func (q *queues) refuse(r *request, f *refuse.Refusal) {
	c := r.target.queue
	if c.bad != nil {
		q.send(r, c.bad)
		return
	}
	if f.Code.Status() >= fasthttp.StatusInternalServerError {
		r.http.Response.Header.Del(headerIndex)
	}
	if f.Code == wire.CodeOverloaded {
		r.core.metrics.Overload(f.Reason)
	}
	q.send(r, q.errorOf(f, c.head.Op))
}

// refuseUnread is refuse for a request whose body was not read; the operation of a form, which is in its body, is
// unknown. It returns false, and answers nothing, if the request is not one of SQS.
func (q *queues) refuseUnread(h *fasthttp.RequestHeader, resp *fasthttp.Response, f *refuse.Refusal, id []byte) bool {
	path, query := splitURI(h.RequestURI())
	head, ok := sqs.HeadOf(string(h.Method()), string(path), string(query), string(h.Peek(amzTarget)), nil)
	if !ok || q.off && head.Bad != nil {
		return false
	}
	bad := q.errorOf(f, head.Op)
	resp.SetBody(bad.Append(nil, head.Query, id))
	writeQueueError(resp, &head, bad, id)
	return true
}

// errorOf returns a refusal of the server as the protocol has it.
func (q *queues) errorOf(f *refuse.Refusal, op sqs.Op) *sqs.Error {
	if q.off {
		return sqs.Off()
	}
	switch f.Code {
	case wire.CodeUnauthorized, wire.CodeForbidden:
		return sqs.AccessDenied(f.Text)
	case wire.CodeRateLimited:
		if op == sqs.ReceiveMessage { // consumers end at anything but a fault of the server
			return sqs.Unavailable(f.Text)
		}
		return sqs.Throttled(f.Text)
	case wire.CodeNoLeader, wire.CodeShuttingDown, wire.CodeOutcomeUnknown, wire.CodeOverloaded:
		return sqs.Unavailable(f.Text)
	case wire.CodePayloadTooLarge:
		return sqs.TooLong(q.bodyMax)
	case wire.CodeInternal:
		return sqs.Internal()
	}
	return sqs.Other(fasthttp.StatusBadRequest, f.Text)
}

// queueHost is sqs.Host for one request.
type queueHost struct {
	*queues
	r    *request
	gone bool // the client has gone while it waited
}

func (h *queueHost) Propose(cmd command.Command) (fsm.Result, bool) {
	p, ok := h.r.propose(cmd)
	return p.Result, ok
}

func (h *queueHost) Claim(cmd command.ClaimNext, wait time.Duration) (fsm.Result, bool) {
	p, gone, ok := proposeClaim(h.r, cmd, h.r.waitLeft(wait.Milliseconds()))
	h.gone = gone
	return p.Result, ok
}

func (h *queueHost) Read(fn func(m *fsm.Machine, now fsm.Stamp)) bool { return h.r.read(fn) }

func (h *queueHost) Look(fn func(m *fsm.Machine)) bool {
	_, err := h.r.core.node.ReadStale(h.r.ctx(), 0, func(m *fsm.Machine, _ fsm.Stamp) { fn(m) })
	if err != nil {
		h.r.refuseError(err)
	}
	return err == nil
}

// Purge implements sqs.Host. It is the action of operators on many tasks.
func (h *queueHost) Purge(taskType string) bool {
	select {
	case h.actions.under <- struct{}{}:
		defer func() { <-h.actions.under }()
	default:
		h.r.refuse(refuse.Overloaded("", "The leader is busy with "+strconv.Itoa(actionsMax)+" actions on many tasks, its limit"))
		return false
	}
	found := actionMatches{req: &codec.Action{Action: command.ActionCancel, Filter: fsm.Filter{Type: taskType}}}
	if !found.match(h.r) {
		return false
	}
	_, more, ok := actOn(h.r, &found)
	if ok && more {
		h.r.refuse(refuse.Overloaded("", "There was no time to remove all messages"))
		return false
	}
	return ok
}

func (h *queueHost) DeletedLate() { h.r.core.metrics.LateDeletes.Inc() }

func (h *queueHost) MaySee(taskType string) bool { return h.r.maySee(taskType) }
func (h *queueHost) Operates() bool              { return h.r.operates() }
func (h *queueHost) Caller() string              { return h.r.by() }
func (h *queueHost) Now() time.Time              { return h.r.timing.start }

func (h *queueHost) URL(queue string) string {
	base := h.cfg.URL
	if base == "" {
		base = "http://"
		if h.tls {
			base = "https://"
		}
		base += string(bytes.ToLower(h.r.http.Request.Header.Host()))
	}
	return base + "/" + h.cfg.Account + "/" + queue
}

func (h *queueHost) ARN(queue string) string {
	region := h.cfg.Region
	if c := h.r.target.queue; c.signed != nil && region == "" {
		region = c.signed.Region()
	}
	return "arn:aws:sqs:" + region + ":" + h.cfg.Account + ":" + queue
}

// authenticateSQS is authenticate for a call of SQS.
func (r *request) authenticateSQS(keys *door.Keyring) *refuse.Refusal {
	failures := &r.core.metrics.AuthFailures
	if keys == nil && r.hop.passing.Known {
		return failures.Refuse(door.FailDiffer, door.Differ("This node leads and has no API keys, and the node that passed the request on has"))
	}
	k, why, bad := r.core.sqs.authenticate(r, keys)
	switch {
	case bad != nil:
		return failures.Refuse(why, bad)
	case k == nil:
		return nil
	}
	return r.mayAsk(k, nil)
}

const (
	// sqsHold bounds how long a call of SQS waits for a leader, because its clients repeat a call a few times within
	// milliseconds, and an election takes a second.
	sqsHold = 5 * time.Second
	// sqsHoldLook is the interval at which a held call looks for a leader.
	sqsHoldLook = 50 * time.Millisecond
)

// mayAwaitLeader reports whether the request may be held for a leader: it is a call of SQS that came to this node, and
// has not been held for as long as it may.
func (r *request) mayAwaitLeader() bool {
	return r.target.call.sqs && !r.hop.forwarded && time.Since(r.timing.start) < sqsHold
}

// awaitLeader holds a call of SQS until a leader is known. It waits a little in any case, because the known one may be
// gone. bad refuses the call if too many of its key are waiting. Errors: nodes.ErrNoLeader if there was no leader in
// time or bad is set; otherwise why the answer is no longer wanted.
func (r *request) awaitLeader() (bad *refuse.Refusal, err error) {
	caller, end, bad := r.caller(sqsHold)
	if bad != nil {
		return bad, nodes.ErrNoLeader
	}
	defer end()
	tick := time.NewTicker(sqsHoldLook)
	defer tick.Stop()
	for r.mayAwaitLeader() {
		select {
		case <-caller.Done():
			return nil, context.Cause(caller)
		case <-tick.C:
		}
		if r.node().LeaderHTTPAddr() != "" || r.node().IsLeader() {
			r.restartDeadline()
			return nil, nil
		}
	}
	return nil, nodes.ErrNoLeader
}
