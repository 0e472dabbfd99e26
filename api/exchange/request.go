package exchange

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
	"github.com/claimq/claimq/api/turn"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Names of the headers in the contract.
const (
	HeaderRequestID = "X-Request-Id" // as fasthttp spells X-Request-ID
	HeaderIndex     = "X-Claimq-Index"
	headerMinIndex  = "X-Claimq-Min-Index"
	headerRedirect  = "X-Claimq-Redirect"
	// HeaderTarget sends the client's original target to the leader, because an HTTP client would normalize it as a
	// path. It is read only on the peer port.
	HeaderTarget = "X-Claimq-Target"
	// HeaderWaited tells the leader how many milliseconds a waiting request has waited already. In its answer to
	// another node, HeaderHolds names the claims to release if the answer cannot be written, and HeaderGivenUp says
	// that the caller had gone and nothing was done. Clients do not see these two.
	HeaderWaited  = "X-Claimq-Waited-Ms"
	HeaderHolds   = "X-Claimq-Holds"
	HeaderGivenUp = "X-Claimq-Given-Up"
	// HeaderOpRefused, in the leader's answer to a batch, tells the node that counts it that an op was refused.
	// Clients do not see it.
	HeaderOpRefused = "X-Claimq-Op-Refused"
	// HeaderUnsent, in a node's batch to the leader, says that the claims to release are ones whose answer could not
	// be written.
	HeaderUnsent = "X-Claimq-Unsent"
)

// Headers of every answer, ready for SetCanonical, because normalizing a name costs more than the rest of setting it.
var (
	nameRequestID = []byte(HeaderRequestID)
	nameIndex     = []byte(HeaderIndex)
	// Browsers must not guess another content type.
	nameContentTypeOptions = []byte("X-Content-Type-Options")
	valueNosniff           = []byte("nosniff")
)

// Request is one request on its way through the server. It is pooled, so that nothing may keep it, or its body, after
// the answer.
type Request struct {
	Server    *Host
	HTTP      *fasthttp.RequestCtx
	Target    target
	query     []Param // the call's own parameters
	Stale     bool    // consistency=stale
	Forwarded bool    // another node forwarded it
	Start     time.Time
	Asks      time.Time // since when the node is asked; later than Start if the request has waited
	ID        []byte    // request id
	Code      wire.Code
	Label     string // of the metrics; "" = by code
	minIndex  uint64
	// key is the name of the request's key and roles are its roles; both are empty in open mode. onlyTypes are the
	// task types that it may touch, nil = all. passed says that another node knows the key and counted the request.
	// Who is the key itself; quota is what it has left, if the request was counted.
	key       string
	roles     keyring.Roles
	onlyTypes []string
	passed    bool
	Who       *keyring.Caller
	in        *login.Login    // by which the key is known; nil: the key itself was sent
	Barred    *keyring.Caller // the request's key, if it has expired or is for other addresses
	quota     keyring.Quota
	settles   bool            // counted only if refused
	OpRefused bool            // an op of the answered batch was refused
	room      int64           // taken for the answer
	ahead     int64           // taken for the result that the answer is made from
	passedOn  int64           // counted for the body that another node has forwarded
	shared    bool            // the answer's body is shared by all such answers, and takes no room
	Ops       *callbody.Batch // the decoded batch; nil: not decoded yet
	// Holds are the claims to release if the answer cannot be written.
	Holds []command.Hold
	// release, if not nil, frees the memory of the result that the answer was made from.
	release func()
	// turn is the request's turn among the reads; nil: it has none now.
	turn *turn.Turn
	// turned says that it has had a turn.
	turned bool
}

// Handle answers one request. It always produces an answer, even after a panic.
func (s *Host) Handle(ctx *fasthttp.RequestCtx, forwarded bool) {
	dropTrailers(&ctx.Request.Header)
	r := s.requests.Get().(*Request)
	*r = Request{Server: s, HTTP: ctx, Forwarded: forwarded, Start: time.Now(), ID: r.ID[:0], Target: target{call: s.Calls.none}}
	r.Asks = r.Start
	s.Metrics.InFlight.Inc()
	defer r.finish()
	r.sent()
	r.ID = requestID(r.ID, ctx.Request.Header.Peek(HeaderRequestID), r.Start)
	ctx.Response.Header.SetCanonical(nameRequestID, r.ID)
	r.serve()
}

// finish answers after a panic, counts the request and returns it to the pool.
func (r *Request) finish() {
	s := r.Server
	if p := recover(); p != nil {
		s.Metrics.Panics.Inc()
		s.Logger.Error("panic while answering a request", "request_id", s.LoggedID(r.ID), "call", r.Target.call.String(), "panic", p, "stack", string(debug.Stack()))
		r.ResetAnswer()
		r.Refuse(refuse.Because(wire.CodeInternal))
	}
	r.countAnswer()
	r.endTurn()
	r.guardAnswer()
	if conn, ok := r.HTTP.Conn().(*port.Conn); ok && conn.Uncovered() {
		r.HTTP.SetConnectionClose()
	}
	r.chargeRefused()
	if r.quota.Limit > 0 {
		setQuota(&r.quota, &r.HTTP.Response)
	}
	if !r.Forwarded {
		r.HTTP.Response.Header.SetCanonical(nameContentTypeOptions, valueNosniff)
		if r.Target.call.Has(Unkept) {
			r.HTTP.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		}
		r.tellPage()
		if r.in != nil {
			r.renewLogin()
		}
		r.shareAnswer()
	}
	r.tellDenied()
	s.Metrics.InFlight.Dec()
	if over := r.Target.call.TakeOver; over == nil || !over(r) {
		r.Count()
	}
	if r.release != nil {
		r.release()
	}
	r.Server.Port.Results.Give(r.ahead)
	r.Server.Port.GiveBody(r.passedOn)
	r.giveBody()
	r.HTTP, r.query, r.Holds, r.release, r.Target = nil, nil, nil, nil, target{}
	r.onlyTypes, r.Who, r.in, r.Barred, r.Ops = nil, nil, nil, nil, nil
	s.requests.Put(r)
}

// Count counts and times the answer.
func (r *Request) Count() {
	code := r.Label
	if code == "" {
		code = string(r.Code)
	}
	r.Target.call.counts.Observe(code, r.Start)
}

// serve checks and routes the request, and answers it here or through the leader.
func (r *Request) serve() {
	s := r.Server
	uri := r.HTTP.Request.Header.RequestURI()
	if r.Forwarded {
		if sent := r.HTTP.Request.Header.Peek(HeaderTarget); len(sent) > 0 {
			uri = sent
		}
	}
	path, query := SplitURI(uri)
	t, bad := s.Calls.paths.find(r.HTTP.Request.Header.Method(), path)
	r.Target = t
	if bad == nil && !printable(uri) {
		bad = refuse.Param("", "The path or the query has a space or a control character that is not percent-encoded")
	}
	if bad := r.admit(); bad != nil {
		r.Refuse(bad)
		return
	}
	if bad != nil {
		if bad.Code == wire.CodeMethodNotAllowed {
			r.HTTP.Response.Header.Set("Allow", t.allow)
		}
		r.Refuse(bad)
		return
	}
	if s.Draining.Load() && !t.call.Has(Always) {
		r.Refuse(refuse.Because(wire.CodeShuttingDown))
		return
	}
	if bad := r.readQuery(query); bad != nil {
		r.Refuse(bad)
		return
	}
	if bad := refuseEncoding(&r.HTTP.Request); bad != nil {
		r.Refuse(bad)
		return
	}
	if len(r.HTTP.Request.Body()) > s.Cfg.Limits.BodyBytes {
		r.Refuse(s.bodyTooLarge())
		return
	}
	if r.Forwarded {
		var ok bool
		if r.passedOn, ok = s.Port.TakePassedOn(len(r.HTTP.Request.Body())); !ok {
			r.Refuse(s.Port.BodiesFull())
			return
		}
	}
	if t.call.Has(Batched) && r.roles != 0 {
		if bad := r.mayBatch(); bad != nil {
			r.Refuse(bad)
			return
		}
	}
	if t.call.Has(Local) || r.Stale || t.call.Here != nil && t.call.Here(r) || s.Node.IsLeader() {
		t.call.answer(r)
		return
	}
	r.Elsewhere()
}

// admit refuses a request because of its origin, which the node that it reaches checks, or because of its key, which
// every node checks.
func (r *Request) admit() *refuse.Refusal {
	if !r.Forwarded {
		if r.Server.Leaving.Load() {
			r.HTTP.Response.SetConnectionClose() // so that the client connects to another node
		}
		if conn, ok := r.HTTP.Conn().(*port.Conn); ok && conn.Head.Crowded {
			r.HTTP.Response.SetConnectionClose()
			return lasting.Refuse(lasting.Connection)
		}
		switch crossOrigin, bad := r.Server.guard(&r.HTTP.Request.Header, r.Target.call); {
		case crossOrigin:
			return r.Server.Metrics.AuthFailures.Refuse(keyring.FailOrigin, bad)
		case bad != nil:
			return bad
		}
	}
	return r.authenticate()
}

// readQuery reads the parameters and headers that several calls have in common, and leaves the call's own.
func (r *Request) readQuery(query []byte) *refuse.Refusal {
	if r.Target.call.Has(Probe) {
		return nil // probes and scrapers may add their own
	}
	params, bad := parseQuery(query)
	if bad != nil {
		return bad
	}
	r.query = params
	if r.Target.call.Has(Mutation) {
		return refuseQuery(params)
	}
	for i, p := range params {
		if p.Name != "consistency" {
			continue
		}
		if p.Value != "stale" && p.Value != "linearizable" {
			return refuse.Param("consistency", "Invalid consistency: must be linearizable (the default) or stale")
		}
		r.Stale = p.Value == "stale"
		r.query = append(params[:i], params[i+1:]...)
		break
	}
	if v := r.HTTP.Request.Header.Peek(headerMinIndex); len(v) > 0 {
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil || v[0] == '0' && len(v) > 1 {
			return refuse.Param("X-Claimq-Min-Index", "Invalid X-Claimq-Min-Index: must be an integer from 0 to 18446744073709551615")
		}
		r.minIndex = n
	}
	return nil
}

// Wait returns the context that bounds how long the node may take.
func (r *Request) Wait() context.Context { return r.Server.Waits.At(r.Asks) }

// Decoder returns a decoder of the request's body. The caller must call Free.
func (r *Request) Decoder() *callbody.Decoder {
	return callbody.NewDecoder(r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
}

// Propose proposes cmd. ok is false if the request was already answered, with a refusal or the leader's answer.
func (r *Request) Propose(cmd command.Command) (p nodes.Proposed, ok bool) {
	if bad := r.Permit(cmd); bad != nil {
		r.Refuse(bad)
		return p, false
	}
	if !r.roomAhead(cmd) {
		return p, false
	}
	r.Server.AtWork.Note(cmd, r.Start)
	p, err := r.Server.Node.Propose(r.Wait(), cmd)
	if err != nil && untrace(cmd, err) {
		p, err = r.Server.Node.Propose(r.Wait(), cmd)
	}
	if plain, had := Unsigned(cmd, err); had {
		p, err = r.Server.Node.Propose(r.Wait(), plain)
	}
	if err == nil {
		r.release = p.Release
		r.SetIndex(p.Index)
		r.holdUntilSent(cmd, &p.Result)
		r.narrow(&p)
		return p, r.roomForResult(&p.Result)
	}
	r.RefuseError(err)
	return p, false
}

// ProposeTask is Propose for a command about one task whose refusal is answered, too.
func (r *Request) ProposeTask(cmd command.Command) (p nodes.Proposed, ok bool) {
	p, ok = r.Propose(cmd)
	if ok && p.Result.Code != "" {
		r.Refuse(r.RefuseResult(cmd, p.Result))
		return p, false
	}
	return p, ok
}

// Read reads the state with the request's consistency, once it has its turn. ok is false if the request was already
// answered.
func (r *Request) Read(fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool) {
	read := r.Server.Node.ReadLinearizable
	if r.Stale {
		read = r.Server.Node.ReadStale
	}
	if r.turned || r.Target.call.Has(Mutation) {
		return r.readDone(read(r.Wait(), r.minIndex, fn))
	}
	// Waiting for the other nodes takes no CPU, and so no turn.
	index, err := read(r.Wait(), r.minIndex, func(*fsm.Machine, fsm.Stamp) {})
	if err != nil {
		r.RefuseError(err)
		return false
	}
	return r.TakeTurn() && r.readDone(r.Server.Node.ReadStale(r.Wait(), index, fn))
}

// readDone sets the index of the state that was read.
func (r *Request) readDone(index uint64, err error) (ok bool) {
	if err != nil {
		r.RefuseError(err)
		return false
	}
	r.SetIndex(index)
	return true
}

// ReadOn continues to read this node's state, at index or later. Between reads a request that has a turn rests. ok is
// false if the request was already answered.
func (r *Request) ReadOn(index uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool) {
	if r.turn != nil {
		r.turn.Rest()
	}
	if _, err := r.Server.Node.ReadStale(r.Wait(), index, fn); err != nil {
		r.RefuseError(err)
		return false
	}
	return true
}

// TakeTurn waits for the request's turn to read the state or to do other CPU-intensive work; the turn lasts until its
// answer is made. ok is false if the request was already answered.
func (r *Request) TakeTurn() (ok bool) {
	if r.turned { // it need not wait again if it was held meanwhile
		return true
	}
	line := r.Server.Short
	if r.Target.call.Has(Long) {
		line = r.Server.Long
	}
	turn, err := line.Take(r.Wait(), r.key)
	if err != nil {
		r.RefuseError(err)
		return false
	}
	r.turn, r.turned = turn, true
	return true
}

// endTurn ends the request's turn, if it has one.
func (r *Request) endTurn() {
	if r.turn != nil {
		r.turn.End()
		r.turn = nil
	}
}

// RefuseError answers an error of the node. If this node no longer leads, it forwards the request, once.
func (r *Request) RefuseError(err error) {
	if errors.Is(err, nodes.ErrNotLeader) && !r.Forwarded {
		r.Elsewhere()
		return
	}
	r.RefuseCode(err)
}

// RefuseCode answers an error with its code.
func (r *Request) RefuseCode(err error) {
	if ended := (*lasting.Ended)(nil); errors.As(err, &ended) && !errors.Is(err, nodes.ErrOutcomeUnknown) {
		r.HTTP.Response.Header.Del(HeaderIndex) // set by the read before the wait
		r.Refuse(r.Server.RefuseEnded(ended))
		return
	}
	code := refuse.CodeOf(err, r.Target.call.Has(Mutation))
	switch code {
	case wire.CodeInvalidRequest:
		r.Refuse(refuse.Level())
		return
	case wire.CodePayloadTooLarge:
		r.Refuse(refuse.TooLarge("", "The request is larger than a log entry may be"))
		return
	case wire.CodeInternal:
		r.Server.Logger.Error("request failed", "request_id", r.Server.LoggedID(r.ID), "call", r.Target.call.String(), "error", err, "stack", string(debug.Stack()))
	}
	f := refuse.Because(code)
	if over := (*nodes.Overload)(nil); code == wire.CodeOverloaded && errors.As(err, &over) {
		f.Reason = fsm.Reason(over.Bound)
	}
	r.Refuse(f)
}

// SetIndex sets the index of the log that the answer reflects.
func (r *Request) SetIndex(index uint64) {
	var buf [20]byte
	r.HTTP.Response.Header.SetCanonical(nameIndex, strconv.AppendUint(buf[:0], index, 10))
}

// Body returns the response's own buffer, empty, to append an answer to; Send gives it back.
func (r *Request) Body() []byte { return r.HTTP.Response.SwapBody(nil)[:0] }

// Send answers with the status and the body, which was made from Body.
func (r *Request) Send(status int, b []byte) {
	resp := &r.HTTP.Response
	resp.SwapBody(b)
	if conn, ok := r.HTTP.Conn().(*port.Conn); ok && cap(b) > KeptBytes {
		conn.Reuse(b)
	}
	resp.SetStatusCode(status)
	resp.Header.SetContentType("application/json")
}

// SendShared answers 200 with a constant body that all such answers share.
func (r *Request) SendShared(contentType string, body []byte) {
	r.HTTP.Response.SetBodyRaw(body)
	r.HTTP.Response.Header.SetContentType(contentType)
	r.shared = true
}

// ResetAnswer drops the answer so far, except the request id.
func (r *Request) ResetAnswer() {
	r.HTTP.Response.Reset()
	r.shared = false
	r.HTTP.Response.Header.SetCanonical(nameRequestID, r.ID)
}

// Refuse answers with a refusal.
func (r *Request) Refuse(f *refuse.Refusal) {
	r.Code = f.Code
	status := f.Code.Status()
	if status >= fasthttp.StatusInternalServerError {
		r.HTTP.Response.Header.Del(HeaderIndex) // set by an earlier read; this answer reflects none
	}
	r.Send(status, refuse.Append(r.Body(), f, r.ID))
	setRetryAfter(&r.HTTP.Response, f.Code)
	if f.Code == wire.CodeUnauthorized {
		r.HTTP.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, keyring.Challenge)
	}
	if f.Code == wire.CodeOverloaded {
		r.Server.Metrics.Overload(f.Reason)
	}
}

func setRetryAfter(resp *fasthttp.Response, code wire.Code) {
	switch code {
	case wire.CodeOverloaded, wire.CodeNoLeader, wire.CodeShuttingDown:
		resp.Header.Set("Retry-After", refuse.RetryAfterS)
	}
}
