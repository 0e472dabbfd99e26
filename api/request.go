package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/oidc"
	"github.com/claimq/claimq/internal/zones"
	"github.com/claimq/claimq/nodes"
)

// Names of the headers in the contract.
const (
	headerRequestID = "X-Request-Id" // as fasthttp spells X-Request-ID
	headerIndex     = "X-Claimq-Index"
	headerMinIndex  = "X-Claimq-Min-Index"
	headerRedirect  = "X-Claimq-Redirect"
)

// Headers of every answer, ready for SetCanonical, because normalizing a name costs more than the rest of setting it.
var (
	nameRequestID = []byte(headerRequestID)
	nameIndex     = []byte(headerIndex)
	// Browsers must not guess another content type.
	nameContentTypeOptions = []byte("X-Content-Type-Options")
	valueNosniff           = []byte("nosniff")
)

// request is one request on its way through the server. It is pooled, so nothing may keep it, or its body, after the
// answer. Each part is explained, and mostly used, in the file of its type.
type request struct {
	core     *core
	http     *fasthttp.RequestCtx
	id       []byte   // X-Request-ID
	target   target   // the call, and what the path names (paths.go)
	asked    asked    // parameters and headers (params.go)
	hop      hop      // whether another node has passed it on (forward.go)
	who      who      // the key that it was sent with (keycheck.go)
	rate     rate     // how it counts for the key's rate (keycheck.go)
	timing   timing   // when it began, and its turn among the reads
	reserved reserved // memory for its result and answer (answers.go)
	delivery delivery // what to do if the answer cannot be delivered (caller.go)
	outcome  outcome
}

// timing holds when a request began, and its turn among the reads.
type timing struct {
	start    time.Time
	node     time.Time  // when the node's time to answer began; later than start if the request has waited
	searches bool       // it searches params, and takes its turn with others that do
	turn     *door.Turn // nil: it has none now
	turned   bool       // it has had a turn
}

// outcome says how a request ended, for the metrics.
type outcome struct {
	code  wire.Code // of a refusal
	label string    // "" = by code
}

// handle answers one request. It always produces an answer, even after a panic.
func (s *core) handle(ctx *fasthttp.RequestCtx, forwarded bool) {
	dropTrailers(&ctx.Request.Header)
	r := s.requests.Get().(*request)
	now := time.Now()
	*r = request{core: s, http: ctx, id: r.id[:0], target: target{call: s.calls.none}, hop: hop{forwarded: forwarded}, timing: timing{start: now, node: now}}
	if conn, ok := ctx.Conn().(passedConn); ok {
		r.hop.passing = conn.Passing()
	}
	s.metrics.InFlight.Inc()
	defer r.finish()
	r.previousWritten()
	r.id = requestID(r.id, ctx.Request.Header.Peek(headerRequestID), now)
	ctx.Response.Header.SetCanonical(nameRequestID, r.id)
	r.serve()
}

// serve checks and routes the request, and answers it here or through the leader.
func (r *request) serve() {
	s := r.core
	uri := r.http.Request.Header.RequestURI()
	path, query := splitURI(uri)
	t, bad := s.find(r, path, query)
	r.target = t
	if bad == nil && !printable(uri) {
		bad = refuse.Param("", "The path or the query has a space or a control character that is not percent-encoded")
	}
	if bad := r.admit(); bad != nil {
		r.refuse(bad)
		return
	}
	if bad != nil {
		if bad.Code == wire.CodeMethodNotAllowed {
			r.http.Response.Header.Set("Allow", t.allow)
		}
		r.refuse(bad)
		return
	}
	if s.draining.Load() && !t.call.has(whileDraining) {
		r.refuse(refuse.Because(wire.CodeShuttingDown))
		return
	}
	if bad := r.readQuery(query); bad != nil {
		r.refuse(bad)
		return
	}
	if bad := refuseEncoding(&r.http.Request); bad != nil {
		r.refuse(bad)
		return
	}
	if len(r.input()) > s.cfg.Limits.BodyBytes {
		r.refuse(s.bodyTooLarge())
		return
	}
	if r.hop.forwarded {
		var ok bool
		if r.reserved.body, ok = s.port.ReserveForwarded(len(r.input())); !ok {
			r.refuse(s.port.BodiesFull())
			return
		}
	}
	if t.call.has(hasOps) && r.who.roles != 0 {
		if bad := r.mayBatch(); bad != nil {
			r.refuse(bad)
			return
		}
	}
	if t.call.has(answeredHere) || r.asked.stale || t.call.here != nil && t.call.here(r) || s.node.IsLeader() {
		t.call.run(r)
		return
	}
	r.forwardOrRedirect()
}

// find returns the call that a request makes: a row of the table, or a call of SQS.
func (s *core) find(r *request, path, query []byte) (target, *refuse.Refusal) {
	if t, ok := s.sqs.find(r, path, query); ok {
		return t, nil
	}
	return s.calls.paths.find(r.http.Request.Header.Method(), path)
}

// admit refuses a request because of its origin, which the node that it reaches checks, or because of its key, which
// every node checks.
func (r *request) admit() *refuse.Refusal {
	if !r.hop.forwarded {
		if r.core.leaving.Load() {
			r.http.Response.SetConnectionClose() // so that the client connects to another node
		}
		if conn, ok := r.http.Conn().(*door.Conn); ok && conn.Head.Crowded {
			r.http.Response.SetConnectionClose()
			return door.RefuseShare(door.ShareConnection)
		}
		switch crossOrigin, bad := r.core.guard(&r.http.Request.Header, r.target.call); {
		case crossOrigin:
			return r.core.metrics.AuthFailures.Refuse(door.FailOrigin, bad)
		case bad != nil:
			return bad
		}
	}
	return r.authenticate()
}

// readQuery reads the parameters and headers that several calls have in common, and leaves the call's own.
func (r *request) readQuery(query []byte) *refuse.Refusal {
	if r.target.call.has(ignoresParams) {
		return nil // probes and scrapers may add their own
	}
	params, bad := parseQuery(query)
	if bad != nil {
		return bad
	}
	r.asked.params = params
	if r.target.call.has(mutation) {
		return refuseQuery(params)
	}
	for i, p := range params {
		if p.name != "consistency" {
			continue
		}
		if p.value != "stale" && p.value != "linearizable" {
			return refuse.Param("consistency", "Invalid consistency: must be linearizable (the default) or stale")
		}
		r.asked.stale = p.value == "stale"
		r.asked.params = append(params[:i], params[i+1:]...)
		break
	}
	if v := r.header(headerMinIndex); len(v) > 0 {
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil || v[0] == '0' && len(v) > 1 {
			return refuse.Param("X-Claimq-Min-Index", "Invalid X-Claimq-Min-Index: must be an integer from 0 to 18446744073709551615")
		}
		r.asked.minIndex = n
	}
	return nil
}

// propose proposes cmd. ok is false if the request was already answered, with a refusal or the leader's answer.
func (r *request) propose(cmd command.Command) (p nodes.Proposed, ok bool) {
	if bad := r.permit(cmd); bad != nil {
		r.refuse(bad)
		return p, false
	}
	if !r.reserveResult(cmd) {
		return p, false
	}
	r.core.presence.note(cmd, r.timing.start)
	p, err := r.node().Propose(r.ctx(), cmd)
	if err != nil {
		r.refuseError(err)
		return p, false
	}
	return p, r.applied(cmd, &p)
}

// applied prepares the answer to a command that was applied. ok is false if the request was already answered, because
// there is no memory for it.
func (r *request) applied(cmd command.Command, p *nodes.Proposed) (ok bool) {
	r.reserved.freeResult = p.Release
	r.setIndex(p.Index)
	r.noteClaims(cmd, &p.Result)
	r.narrowResult(p)
	return r.reserveForDone(&p.Result)
}

// proposeTask is propose for a command about one task whose refusal is answered, too.
func (r *request) proposeTask(cmd command.Command) (p nodes.Proposed, ok bool) {
	p, ok = r.propose(cmd)
	if ok && p.Result.Code != "" {
		r.refuse(r.refuseResult(cmd, p.Result))
		return p, false
	}
	return p, ok
}

// read reads the state with the request's consistency, once it has its turn. ok is false if the request was already
// answered.
func (r *request) read(fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool) {
	read := r.node().ReadLinearizable
	if r.asked.stale {
		read = r.node().ReadStale
	}
	if r.timing.turned || r.target.call.has(mutation) {
		return r.readDone(read(r.ctx(), r.asked.minIndex, fn))
	}
	// Waiting for the other nodes takes no CPU, and so no turn.
	index, err := read(r.ctx(), r.asked.minIndex, func(*fsm.Machine, fsm.Stamp) {})
	if err != nil {
		r.refuseError(err)
		return false
	}
	return r.takeTurn() && r.readDone(r.node().ReadStale(r.ctx(), index, fn))
}

// readDone sets the index of the state that was read.
func (r *request) readDone(index uint64, err error) (ok bool) {
	if err != nil {
		r.refuseError(err)
		return false
	}
	r.setIndex(index)
	return true
}

// readOn continues to read this node's state, at index or later. Between reads a request that has a turn rests. ok is
// false if the request was already answered.
func (r *request) readOn(index uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool) {
	if r.timing.turn != nil {
		r.timing.turn.Rest()
	}
	if _, err := r.node().ReadStale(r.ctx(), index, fn); err != nil {
		r.refuseError(err)
		return false
	}
	return true
}

// takeTurn waits for the request's turn to read the state or to do other CPU-intensive work; the turn lasts until its
// answer is made. ok is false if the request was already answered.
func (r *request) takeTurn() (ok bool) {
	if r.timing.turned { // it need not wait again if it was held meanwhile
		return true
	}
	queue := r.core.short
	switch {
	case r.timing.searches:
		queue = r.core.searches
	case r.target.call.has(readsMuch):
		queue = r.core.long
	}
	turn, err := queue.Take(r.ctx(), r.who.name)
	if err != nil {
		r.refuseError(err)
		return false
	}
	r.timing.turn, r.timing.turned = turn, true
	return true
}

// endTurn ends the request's turn, if it has one.
func (r *request) endTurn() {
	if r.timing.turn != nil {
		r.timing.turn.End()
		r.timing.turn = nil
	}
}

// refuseError answers an error of the node. If this node no longer leads, it forwards the request, once.
func (r *request) refuseError(err error) {
	if errors.Is(err, nodes.ErrNotLeader) && !r.hop.forwarded {
		r.forwardOrRedirect()
		return
	}
	r.refuseCode(err)
}

// refuseCode answers an error with its code.
func (r *request) refuseCode(err error) {
	if ended := (*door.KeyEnded)(nil); errors.As(err, &ended) && !errors.Is(err, nodes.ErrOutcomeUnknown) {
		r.http.Response.Header.Del(headerIndex) // set by the read before the wait
		r.refuse(r.core.refuseEnded(ended))
		return
	}
	code := refuse.CodeOf(err, r.target.call.has(mutation))
	switch code {
	case wire.CodeInvalidRequest:
		r.refuse(refuse.Level())
		return
	case wire.CodePayloadTooLarge:
		r.refuse(refuse.TooLarge("", "The request is larger than a log entry may be"))
		return
	case wire.CodeInternal:
		r.core.logger.Error("request failed", "request_id", r.core.loggedID(r.id), "call", r.target.call.String(), "error", err, "stack", string(debug.Stack()))
	}
	f := refuse.Because(code)
	if over := (*nodes.Overload)(nil); code == wire.CodeOverloaded && errors.As(err, &over) {
		f.Reason = fsm.Reason(over.Bound)
	}
	r.refuse(f)
}

// setIndex sets the index of the log that the answer reflects.
func (r *request) setIndex(index uint64) {
	var buf [20]byte
	r.http.Response.Header.SetCanonical(nameIndex, strconv.AppendUint(buf[:0], index, 10))
}

// buffer returns the response's own buffer, empty, to append an answer to; send gives it back.
func (r *request) buffer() []byte { return r.http.Response.SwapBody(nil)[:0] }

// send answers with the status and the body, which was made from buffer.
func (r *request) send(status int, b []byte) {
	resp := &r.http.Response
	resp.SwapBody(b)
	if conn, ok := r.http.Conn().(*door.Conn); ok && cap(b) > keptBytes {
		conn.Reuse(b)
	}
	resp.SetStatusCode(status)
	resp.Header.SetContentType("application/json")
}

// sendShared answers 200 with a constant body that all such answers share.
func (r *request) sendShared(contentType string, body []byte) {
	r.http.Response.SetBodyRaw(body)
	r.http.Response.Header.SetContentType(contentType)
	r.reserved.shared = true
}

// resetAnswer drops the answer so far, except the request id.
func (r *request) resetAnswer() {
	r.http.Response.Reset()
	r.reserved.shared = false
	r.http.Response.Header.SetCanonical(nameRequestID, r.id)
}

// refuse answers with a refusal.
func (r *request) refuse(f *refuse.Refusal) {
	r.outcome.code = f.Code
	if r.target.call.sqs {
		r.core.sqs.refuse(r, f)
		return
	}
	status := f.Code.Status()
	if status >= fasthttp.StatusInternalServerError {
		r.http.Response.Header.Del(headerIndex) // set by an earlier read; this answer reflects none
	}
	r.send(status, refuse.Append(r.buffer(), f, r.id))
	setRetryAfter(&r.http.Response, f.Code)
	if f.Code == wire.CodeUnauthorized {
		r.http.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, door.Challenge)
	}
	if f.Code == wire.CodeOverloaded {
		r.core.metrics.Overload(f.Reason)
	}
}

func setRetryAfter(resp *fasthttp.Response, code wire.Code) {
	switch code {
	case wire.CodeOverloaded, wire.CodeNoLeader, wire.CodeShuttingDown:
		resp.Header.Set("Retry-After", refuse.RetryAfterS)
	}
}

// finish completes every answer, also after a panic: it adds the headers that all answers have, arranges what follows
// when the answer is written or cannot be, and counts the request. It returns the request to the pool.
func (r *request) finish() {
	s := r.core
	if p := recover(); p != nil {
		s.metrics.Panics.Inc()
		s.logger.Error("panic while answering a request", "request_id", s.loggedID(r.id), "call", r.target.call.String(), "panic", p, "stack", string(debug.Stack()))
		r.resetAnswer()
		r.refuse(refuse.Because(wire.CodeInternal))
	}
	r.holdAnswer()
	r.endTurn()
	r.watchDelivery()
	if conn, ok := r.http.Conn().(*door.Conn); ok && conn.Over() {
		r.http.SetConnectionClose()
	}
	r.chargeRefused()
	if r.rate.quota.Limit > 0 {
		setQuota(&r.rate.quota, &r.http.Response)
	}
	if !r.hop.forwarded {
		r.http.Response.Header.SetCanonical(nameContentTypeOptions, valueNosniff)
		if r.target.call.has(noStore) {
			r.http.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		}
		r.tellPage()
		if r.who.login != nil {
			r.renewLogin()
		}
		r.shareAnswer()
	}
	r.tellDenied()
	s.metrics.InFlight.Dec()
	if over := r.target.call.takeOver; over == nil || !over(r) {
		r.observe()
	}
	if r.reserved.freeResult != nil {
		r.reserved.freeResult()
	}
	r.core.port.Results.Free(r.reserved.result)
	r.core.port.FreeForwarded(r.reserved.body)
	r.reuseBody()
	*r = request{core: s, id: r.id}
	s.requests.Put(r)
}

// observe counts and times the answer in the call's metrics.
func (r *request) observe() {
	code := r.outcome.label
	if code == "" {
		code = string(r.outcome.code)
	}
	r.target.call.counts.Observe(code, r.timing.start)
}

// node returns the node that answers the request.
func (r *request) node() Node { return r.core.node }

// limits returns the bounds of what a request may ask for.
func (r *request) limits() *codec.Limits { return &r.core.cfg.Limits }

// zones returns the time zones of schedules.
func (r *request) zones() *zones.Data { return r.core.cfg.Zones.Current() }

// input returns the request's body.
func (r *request) input() []byte { return r.http.Request.Body() }

// header returns the value of a header of the request, empty if it was not sent.
func (r *request) header(name string) []byte { return r.http.Request.Header.Peek(name) }

// taskID returns the task's id in the path.
func (r *request) taskID() uint64 { return r.target.id }

// rest returns the variable last part of the path, still percent-encoded.
func (r *request) rest() []byte { return r.target.rest }

// pageSecret returns the secret of logins in this node's state, or nil.
func (r *request) pageSecret() (secret []byte, err error) { return r.core.pageSecret() }

// restartDeadline gives the node its full time again, after the request has waited for something.
func (r *request) restartDeadline() { r.timing.node = time.Now() }

// outOfTime reports whether a slow call has used up its time on the leader, slowTime.
func (r *request) outOfTime() bool { return time.Since(r.timing.start) >= slowTime }

// ctx returns the context that ends when the node has had its time to answer.
func (r *request) ctx() context.Context { return r.core.waits.at(r.timing.node) }

// decoder returns a decoder of the request's body. The caller must call Free.
func (r *request) decoder() *codec.Decoder {
	return codec.NewDecoder(r.input(), r.limits())
}

// requestID appends the request's id to b: the given one if it is 1 to 128 bytes of printable ASCII, otherwise a new
// UUID of version 7.
func requestID(b, given []byte, now time.Time) []byte {
	if validRequestID(given) {
		return append(b, given...)
	}
	return appendUUID(b, now.UnixMilli(), rand.Uint64(), rand.Uint64())
}

// loggedID returns a request's id for the log and the audit file. An id that contains a key, sent in the wrong
// header, is replaced.
func (s *core) loggedID(id []byte) string {
	keys := s.keys.Load()
	if bytes.Contains(id, []byte(door.KeyPrefix)) || oidc.IsToken(id) || keys != nil && keys.FindText(id) != nil {
		return "(not shown: it has an API key in it)"
	}
	return string(id)
}

func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > wire.RequestMax {
		return false
	}
	for _, c := range id {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// appendUUID appends a UUID of version 7: 48 bits of ms, then random bits. It is not a secret, so the random bits
// need not be cryptographic.
func appendUUID(b []byte, ms int64, r1, r2 uint64) []byte {
	var u [16]byte
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = 0x70 | byte(r1>>8)&0x0f
	u[7] = byte(r1)
	for i := range 8 {
		u[8+i] = byte(r2 >> (56 - 8*i))
	}
	u[8] = 0x80 | u[8]&0x3f
	for i, part := range [5][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}
