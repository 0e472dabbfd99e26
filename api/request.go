package api

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/login"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// The names of the headers that the contract defines.
const (
	headerRequestID = "X-Request-Id" // as fasthttp spells X-Request-ID
	headerIndex     = "X-Claimq-Index"
	headerMinIndex  = "X-Claimq-Min-Index"
	headerRedirect  = "X-Claimq-Redirect"
	// headerTarget carries the target as the client sent it to the leader: on
	// its way through an HTTP client the path would be normalized. Only the
	// peer port's requests are asked for it.
	headerTarget = "X-Claimq-Target"
	// headerWaited tells the leader how long, in milliseconds, a request that
	// waits has waited already. The leader's answer to another node names in
	// headerHolds the claims to release if it cannot be written, and says in
	// headerGivenUp that the caller had gone, and nothing was done. No client
	// sees the two.
	headerWaited  = "X-Claimq-Waited-Ms"
	headerHolds   = "X-Claimq-Holds"
	headerGivenUp = "X-Claimq-Given-Up"
	// headerOpRefused is of the leader's answer to a batch, for the node that counts
	// it: an op was refused. No client sees it.
	headerOpRefused = "X-Claimq-Op-Refused"
)

// The headers of every answer, ready for SetCanonical: normalizing a name costs
// more than the rest of setting it. They are never changed.
var (
	nameRequestID = []byte(headerRequestID)
	nameIndex     = []byte(headerIndex)
	// A browser is not to take an answer for anything but what it says it is.
	nameContentTypeOptions = []byte("X-Content-Type-Options")
	valueNosniff           = []byte("nosniff")
)

// request is one request on its way through the server. It is pooled: nothing
// keeps it, or the body that it points into, after the answer.
type request struct {
	server    *host
	http      *fasthttp.RequestCtx
	target    target
	query     []param
	stale     bool // consistency=stale
	forwarded bool // another node passed it on
	start     time.Time
	asks      time.Time // since when the node is asked: later than start if the request has waited
	id        []byte    // request id
	code      wire.Code
	label     string // of the metrics; "" = by code
	minIndex  uint64
	// key is the name of the key that the request was made with, roles what it may do;
	// "" and none in open mode. onlyTypes are the task types that it may touch,
	// nil = all. who is the key itself, quota what it has left, if the request was
	// counted. passed says that another node knows the key, and counted the request.
	key       string
	roles     keyring.Roles
	onlyTypes []string
	passed    bool
	who       *keyring.Caller
	in        *login.Login    // by which the key is known, nil: it was sent
	barred    *keyring.Caller // that the request was made with, if it has expired or is for other addresses
	quota     keyring.Quota
	settles   bool            // it is counted only if it is refused
	opRefused bool            // of a batch that was answered: an op of it was
	room      int64           // that is taken for the answer
	ops       *callbody.Batch // of a batch that was looked at, nil: it was not
	// holds are the claims to release if the answer cannot be written.
	holds []fsm.Hold
	// release, if not nil, gives back the memory of the result that the answer was
	// made of.
	release func()
}

// handle answers one request. Whatever it does, there is an answer.
func (s *host) handle(ctx *fasthttp.RequestCtx, forwarded bool) {
	r := s.requests.Get().(*request)
	*r = request{server: s, http: ctx, forwarded: forwarded, start: time.Now(), id: r.id[:0], target: target{call: s.calls.none}}
	r.asks = r.start
	s.metrics.InFlight.Inc()
	defer r.finish()
	r.sent()
	r.id = requestID(r.id, ctx.Request.Header.Peek(headerRequestID), r.start)
	ctx.Response.Header.SetCanonical(nameRequestID, r.id)
	r.serve()
}

// finish answers what a panic left, counts the request and gives it back.
func (r *request) finish() {
	s := r.server
	if p := recover(); p != nil {
		s.metrics.Panics.Inc()
		s.logger.Error("panic while answering a request", "request_id", s.loggedID(r.id), "call", r.target.call.String(), "panic", p, "stack", string(debug.Stack()))
		r.resetAnswer()
		r.refuse(refuse.Because(wire.CodeInternal))
	}
	r.countAnswer()
	r.guardAnswer()
	if conn, ok := r.http.Conn().(*port.Conn); ok && conn.Uncovered() {
		r.http.SetConnectionClose()
	}
	r.chargeRefused()
	if r.quota.Limit > 0 {
		setQuota(&r.quota, &r.http.Response)
	}
	if !r.forwarded {
		r.http.Response.Header.SetCanonical(nameContentTypeOptions, valueNosniff)
		if r.target.call.has(unkept) {
			r.http.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		}
		r.tellPage()
		if r.in != nil {
			r.renewLogin()
		}
		r.shareAnswer()
	}
	r.tellDenied()
	s.metrics.InFlight.Dec()
	if over := r.target.call.takeOver; over == nil || !over(r) {
		r.count()
	}
	if r.release != nil {
		r.release()
	}
	r.http, r.query, r.holds, r.release, r.target = nil, nil, nil, nil, target{}
	r.onlyTypes, r.who, r.in, r.barred, r.ops = nil, nil, nil, nil, nil
	s.requests.Put(r)
}

// count counts and times the answer.
func (r *request) count() {
	code := r.label
	if code == "" {
		code = string(r.code)
	}
	r.target.call.counts.Observe(code, r.start)
}

// serve guards, routes, and answers here or through the leader.
func (r *request) serve() {
	s := r.server
	uri := r.http.Request.Header.RequestURI()
	if r.forwarded {
		if sent := r.http.Request.Header.Peek(headerTarget); len(sent) > 0 {
			uri = sent
		}
	}
	path, query := splitURI(uri)
	t, bad := s.calls.paths.find(r.http.Request.Header.Method(), path)
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
	if s.draining.Load() && !t.call.has(always) {
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
	if len(r.http.Request.Body()) > s.cfg.Limits.BodyBytes {
		r.refuse(s.bodyTooLarge())
		return
	}
	if t.call.has(batched) && r.roles != 0 {
		if bad := r.mayBatch(); bad != nil {
			r.refuse(bad)
			return
		}
	}
	if t.call.has(local) || r.stale || t.call.here != nil && t.call.here(r) || s.node.IsLeader() {
		t.call.answer(r)
		return
	}
	r.elsewhere()
}

// admit refuses a request for where it comes from, which the node looks at that
// it reaches, or for who made it, which every node looks at.
func (r *request) admit() *refuse.Refusal {
	if !r.forwarded {
		if conn, ok := r.http.Conn().(*port.Conn); ok && conn.Head.Crowded {
			r.http.Response.SetConnectionClose()
			return lasting.Refuse(lasting.Connection)
		}
		if bad := r.server.guard(&r.http.Request.Header, r.target.call); bad != nil {
			return bad
		}
	}
	return r.authenticate()
}

// readQuery takes the parameters and headers that several calls have in
// common; what is left is the call's own.
func (r *request) readQuery(query []byte) *refuse.Refusal {
	if r.target.call.has(probe) {
		return nil // probes and scrapers may add their own
	}
	params, bad := parseQuery(query)
	if bad != nil {
		return bad
	}
	r.query = params
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
		r.stale = p.value == "stale"
		r.query = append(params[:i], params[i+1:]...)
		break
	}
	if v := r.http.Request.Header.Peek(headerMinIndex); len(v) > 0 {
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return refuse.Param("X-Claimq-Min-Index", "Invalid X-Claimq-Min-Index: must be an integer from 0 to 18446744073709551615")
		}
		r.minIndex = n
	}
	return nil
}

// wait returns the context that bounds how long the node may take.
func (r *request) wait() context.Context { return r.server.waits.at(r.asks) }

// propose proposes cmd. ok is false if there is an answer already: a refusal,
// or the one of the leader.
func (r *request) propose(cmd fsm.Command) (p fsm.Proposed, ok bool) {
	if bad := r.permit(cmd); bad != nil {
		r.refuse(bad)
		return p, false
	}
	r.server.atWork.Note(cmd, r.start)
	p, err := r.server.node.Propose(r.wait(), cmd)
	if err != nil && untrace(cmd, err) {
		p, err = r.server.node.Propose(r.wait(), cmd)
	}
	if plain, had := unsigned(cmd, err); had {
		p, err = r.server.node.Propose(r.wait(), plain)
	}
	if err == nil {
		r.release = p.Release
		r.setIndex(p.Index)
		return p, r.roomForResult(&p.Result)
	}
	r.refuseError(err)
	return p, false
}

// proposeTask is propose for a command about one task whose refusal is an
// answer too.
func (r *request) proposeTask(cmd fsm.Command) (p fsm.Proposed, ok bool) {
	p, ok = r.propose(cmd)
	if ok && p.Result.Code != "" {
		r.refuse(r.refuseResult(cmd, p.Result))
		return p, false
	}
	return p, ok
}

// read reads the state as the request's consistency asks for it. ok is false
// if there is an answer already.
func (r *request) read(fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool) {
	read := r.server.node.ReadLinearizable
	if r.stale {
		read = r.server.node.ReadStale
	}
	index, err := read(r.wait(), r.minIndex, fn)
	if err != nil {
		r.refuseError(err)
		return false
	}
	r.setIndex(index)
	return true
}

// readOn reads this node's state for what comes after what was read at index: it
// is no older. ok is false if there is an answer already.
func (r *request) readOn(index uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool) {
	if _, err := r.server.node.ReadStale(r.wait(), index, fn); err != nil {
		r.refuseError(err)
		return false
	}
	return true
}

// refuseError answers an error of the node. A leader that is no more passes
// the request on, once.
func (r *request) refuseError(err error) {
	if errors.Is(err, fsm.ErrNotLeader) && !r.forwarded {
		r.elsewhere()
		return
	}
	r.refuseCode(err)
}

// refuseCode answers an error with its code.
func (r *request) refuseCode(err error) {
	if ended := (*lasting.Ended)(nil); errors.As(err, &ended) && !errors.Is(err, fsm.ErrOutcomeUnknown) {
		r.http.Response.Header.Del(headerIndex) // of the look before the wait
		r.refuse(r.server.refuseEnded(ended))
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
		r.server.logger.Error("request failed", "request_id", r.server.loggedID(r.id), "call", r.target.call.String(), "error", err, "stack", string(debug.Stack()))
	}
	f := refuse.Because(code)
	if over := (*fsm.Overload)(nil); code == wire.CodeOverloaded && errors.As(err, &over) {
		f.Reason = fsm.Reason(over.Bound)
	}
	r.refuse(f)
}

// setIndex says which index of the log the answer reflects.
func (r *request) setIndex(index uint64) {
	var buf [20]byte
	r.http.Response.Header.SetCanonical(nameIndex, strconv.AppendUint(buf[:0], index, 10))
}

// body returns the response's own buffer, empty, to append an answer to;
// send gives it back.
func (r *request) body() []byte { return r.http.Response.SwapBody(nil)[:0] }

func (r *request) send(status int, b []byte) {
	resp := &r.http.Response
	resp.SwapBody(b)
	resp.SetStatusCode(status)
	resp.Header.SetContentType("application/json")
}

// resetAnswer drops what was answered so far, but for the request's id.
func (r *request) resetAnswer() {
	r.http.Response.Reset()
	r.http.Response.Header.SetCanonical(nameRequestID, r.id)
}

// refuse answers a refusal.
func (r *request) refuse(f *refuse.Refusal) {
	r.code = f.Code
	status := f.Code.Status()
	if status >= fasthttp.StatusInternalServerError {
		r.http.Response.Header.Del(headerIndex) // of a read before: this reflects nothing
	}
	r.send(status, refuse.Append(r.body(), f, r.id))
	setRetryAfter(&r.http.Response, f.Code)
	if f.Code == wire.CodeUnauthorized {
		r.http.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, keyring.Challenge)
	}
	if f.Code == wire.CodeOverloaded {
		r.server.metrics.Overload(f.Reason)
	}
}

func setRetryAfter(resp *fasthttp.Response, code wire.Code) {
	switch code {
	case wire.CodeOverloaded, wire.CodeNoLeader, wire.CodeShuttingDown:
		resp.Header.Set("Retry-After", refuse.RetryAfterS)
	}
}
