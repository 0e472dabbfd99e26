package api

import (
	"bytes"
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// headerAPIKey is X-API-Key as fasthttp spells it.
const headerAPIKey = "X-Api-Key"

// bearer is the beginning of Authorization.
var bearer = []byte("Bearer ")

// who identifies the caller by its key. In open mode it is empty.
type who struct {
	name   string
	roles  door.Roles
	types  []string     // the task types that it may touch; nil: all
	key    *door.Caller // the key itself
	login  *door.Login  // by which the key is known; nil: the key itself was sent
	barred *door.Caller // the key, if it has expired or is for other addresses
}

// rate says how a request counts for its key's rate.
type rate struct {
	quota     door.Quota // what the key has left, if the request was counted
	settles   bool       // counted only if refused
	opRefused bool       // an op of the answered batch was refused
}

// authenticate finds the key of a request in this node's own keys, and checks whether it may make the call. Without
// keys every client may do everything.
func (r *request) authenticate() *refuse.Refusal {
	keys := r.core.keys.Load()
	c := r.target.call
	if c.roles.Has(door.RoleNone) {
		return nil
	}
	if c.sqs {
		return r.authenticateSQS(keys)
	}
	text, bad := r.core.presentedKey(&r.http.Request.Header, r.hop.forwarded)
	failures := &r.core.metrics.AuthFailures
	switch {
	case keys == nil && r.hop.passing.Known:
		return failures.Refuse(door.FailDiffer, door.Differ("This node leads and has no API keys, and the node that passed the request on has"))
	case keys == nil:
		return r.readOnlyOpen()
	case bad:
		return failures.Refuse(door.FailMalformed, door.Unauthorized("The API key is malformed"))
	case len(text) == 0 && r.hop.forwarded:
		return failures.Refuse(door.FailMissing, door.Unauthorized("Missing API key: the node that passed the request on may have no keys, but the leader has"))
	case len(text) == 0:
		return failures.Refuse(door.FailMissing, door.Unauthorized("Missing API key"))
	}
	k, in, why, refused := r.core.who(keys, text, r.timing.start)
	switch {
	case refused != nil && why == door.FailUnknown && r.hop.passing.Known:
		return failures.Refuse(door.FailDiffer, door.Differ("The leader does not know the API key, and the node that passed the request on does"))
	case refused != nil:
		return failures.Refuse(why, refused)
	}
	return r.mayAsk(k, in)
}

// mayAsk checks whether a known key may make the call, and counts it. in is the login by which the key is known, or nil.
func (r *request) mayAsk(k *door.Caller, in *door.Login) *refuse.Refusal {
	c, from := r.target.call, r.source()
	if why, bad := k.Bars(r.timing.start, from); bad != nil {
		r.who.barred = k
		return r.core.metrics.AuthFailures.Refuse(why, bad)
	}
	if !r.hop.passing.Known { // otherwise the other node has noted it
		k.Used(r.timing.start, from)
	}
	r.who.key, r.who.name, r.who.roles, r.who.types, r.who.login = k, k.Name, k.Roles, k.Types, in
	if in != nil {
		if bad := r.fromPage(); bad != nil {
			return bad
		}
	}
	if bad := r.mayCall(c); bad != nil {
		return bad
	}
	if c.is&rateFree != 0 {
		r.rate.settles = c.has(mutation)
		return nil
	}
	if c.has(hasOps) {
		return nil
	}
	return r.chargeOnce()
}

// sentWith returns the key that a request of the public port was sent with, nil if it is unknown. A missing or
// invalid key is refused.
func (s *core) sentWith(t *door.Keyring, h *fasthttp.RequestHeader, now time.Time, from netip.Addr) (k *door.Caller, why door.Failure, bad *refuse.Refusal) {
	if !s.sqs.off {
		if k = s.sqs.signer(h, t); k != nil {
			why, bad = k.Bars(now, from)
			return k, why, bad
		}
	}
	text, malformed := s.presentedKey(h, false)
	switch {
	case malformed:
		return nil, door.FailMalformed, door.Unauthorized("The API key is malformed")
	case len(text) == 0:
		return nil, door.FailMissing, door.Unauthorized("Missing API key")
	}
	if k, _, why, bad = s.who(t, text, now); bad != nil {
		return nil, why, bad
	}
	if why, bad = k.Bars(now, from); bad != nil {
		return k, why, bad
	}
	return k, 0, nil
}

// source returns the address of the client, or the zero value if it is unknown.
func (r *request) source() netip.Addr {
	if r.hop.forwarded {
		return r.hop.passing.From
	}
	return door.SourceOf(r.http.RemoteAddr())
}

// mayCall refuses a call that the key's role or task types do not permit.
func (r *request) mayCall(c *call) *refuse.Refusal {
	failures := &r.core.metrics.AuthFailures
	if c.roles&r.who.roles == 0 {
		return failures.Refuse(door.FailRole, door.NoRole(r.who.roles, r.target.call.String(), c.roles))
	}
	if c.is&needsAllTypes != 0 && len(r.who.types) > 0 {
		return failures.Refuse(door.FailType, refuse.New(wire.CodeForbidden, "The call "+r.target.call.String()+" is about all task types, and this key has only some",
			"Use a key without task_types"))
	}
	return nil
}

// mayBatch refuses a batch with an op that the key's role does not permit, and counts the batch, once, unless all its
// ops settle. The request must have a role.
func (r *request) mayBatch() *refuse.Refusal {
	req, bad := codec.DecodeBatch(r.input(), r.limits())
	if bad != nil {
		if r.who.key != nil {
			if over := r.chargeOnce(); over != nil {
				return over
			}
		}
		return bad
	}
	counted := false
	for i, op := range req.Ops {
		c := r.core.calls.ofOp(op)
		counted = counted || c.is&rateFree == 0
		if c.roles&r.who.roles == 0 {
			f := door.NoRole(r.who.roles, c.name, c.roles)
			f.Field = "ops[" + strconv.Itoa(i) + "].op"
			return r.core.metrics.AuthFailures.Refuse(door.FailRole, f)
		}
	}
	r.asked.ops = &req
	if r.rate.settles = !counted; counted && r.who.key != nil {
		return r.chargeOnce()
	}
	return nil
}

// presentedKey returns the key that a request was sent with, or its login if the page sent it; empty if there is
// none. bad says that it cannot be a key. The page of another node may have sent a forwarded one.
func (s *core) presentedKey(h *fasthttp.RequestHeader, forwarded bool) (key []byte, bad bool) {
	key = h.Peek(headerAPIKey)
	if len(key) == 0 {
		authorization := h.Peek(fasthttp.HeaderAuthorization)
		if len(authorization) == 0 {
			return s.pageKey(h, forwarded), false
		}
		n := min(len(authorization), len(bearer))
		if !bytes.EqualFold(authorization[:n], bearer) {
			return nil, true
		}
		key = authorization[n:]
	}
	return key, !door.ValidKeyText(key)
}

// refuseEnded refuses a request whose key became invalid while it waited.
func (s *core) refuseEnded(ended *door.KeyEnded) *refuse.Refusal {
	return s.metrics.AuthFailures.Refuse(ended.Why, ended.Refusal)
}

// Headers that tell a key what is left of its rate.
var (
	nameRateLimit     = []byte("Ratelimit-Limit")
	nameRateRemaining = []byte("Ratelimit-Remaining")
	nameRateReset     = []byte("Ratelimit-Reset")
)

// chargeOnce counts a request for its key's rate, unless another node did.
func (r *request) chargeOnce() *refuse.Refusal {
	if r.hop.passing.Known {
		return nil
	}
	return r.charge()
}

// charge counts a request for its key's rate.
func (r *request) charge() *refuse.Refusal {
	k := r.who.key
	if k.Bucket == nil {
		return nil
	}
	var ok bool
	if r.rate.quota, ok = k.Bucket.Take(int64(r.timing.start.Sub(r.core.begun))); ok {
		return nil
	}
	k.Refused.Add(1)
	return refuse.New(wire.CodeRateLimited, "The key "+k.Name+" has made its "+strconv.FormatInt(k.Bucket.PerMinute, 10)+" requests a minute",
		"Nothing was done: repeat the request after the time in Retry-After, or have the key's rate_limit_per_minute raised")
}

// chargeRefused counts a settling call, or a batch of such ops, that was refused; successful ones do not count. The
// answer is not changed, because a worker must learn that its claim is over, even if its key's rate is used up.
func (r *request) chargeRefused() {
	status := r.http.Response.StatusCode()
	refused := r.rate.opRefused || status >= fasthttp.StatusBadRequest && status < fasthttp.StatusInternalServerError
	switch {
	case !r.rate.settles || !refused:
	case r.hop.passing.Known:
		if conn, ok := r.http.Conn().(passedConn); ok {
			conn.Passed().OpRefused = r.rate.opRefused
		}
	case r.who.key != nil && r.who.key.Bucket != nil:
		r.rate.quota, _ = r.who.key.Bucket.Take(int64(r.timing.start.Sub(r.core.begun)))
		r.rate.quota.RetryNS = 0
	}
}

// setQuota sets the headers that tell what is left after a counted request.
func setQuota(q *door.Quota, resp *fasthttp.Response) {
	var buf [20]byte
	h := &resp.Header
	h.SetCanonical(nameRateLimit, strconv.AppendInt(buf[:0], q.Limit, 10))
	h.SetCanonical(nameRateRemaining, strconv.AppendInt(buf[:0], q.Remaining, 10))
	h.SetCanonical(nameRateReset, strconv.AppendInt(buf[:0], door.Seconds(q.ResetNS), 10))
	if q.RetryNS > 0 {
		h.SetBytesV(fasthttp.HeaderRetryAfter, strconv.AppendInt(buf[:0], door.Seconds(q.RetryNS), 10))
	}
}

// tell records the request's action, which has succeeded, in the trail; what describes it in a few words. If that
// fails, it is only logged, because the action is done.
func (r *request) tell(kind event.Kind, what string) {
	r.core.tell(command.Tell{Kind: kind, By: r.by(), What: what}, r.keyText())
}

// tell records an action for which no request waits now; key is the operator's API key. The node bounds how long it
// takes.
func (s *core) tell(cmd command.Tell, key string) {
	if err := s.node.Tell(context.Background(), cmd, key); err != nil {
		s.logger.Warn("an operator's act is not in the trail", "event", cmd.Kind.String(), "what", cmd.What, "by", cmd.By, "error", err)
	}
}

// operator returns the operator who makes the request.
func (r *request) operator() nodes.Operator { return nodes.Operator{Name: r.by(), Key: r.keyText()} }

// by returns the name of the request's key, "" in open mode.
func (r *request) by() string { return r.who.name }

// operates reports whether the request's key has the role operator; in open mode everyone has it.
func (r *request) operates() bool { return r.who.key == nil || r.who.roles.Has(door.RoleOperator) }

// keyText returns the key itself, "" in open mode.
func (r *request) keyText() string {
	if r.who.key == nil {
		return ""
	}
	key, _ := r.core.presentedKey(&r.http.Request.Header, r.hop.forwarded)
	return string(key)
}

// tellDenied records a request from outside that was answered with 401 or 403: a sample of them in the log, and those
// with a known key in the audit file. The record has the address and the call, but nothing that the client sent,
// because that may include a key.
func (r *request) tellDenied() {
	status := r.http.Response.StatusCode()
	if status != 401 && status != 403 || r.hop.forwarded {
		return
	}
	k := r.who.barred
	if r.who.key != nil {
		k = r.who.key
	}
	r.core.denied(r.http, k, r.target.call, r.id, r.timing.start)
}

// denied records a request that was answered with 401 or 403; k is its key, nil if unknown. It needs no request, because
// one with a bad key is refused before its body is read.
func (s *core) denied(ctx *fasthttp.RequestCtx, k *door.Caller, c *call, id []byte, now time.Time) {
	name, resp := "", &ctx.Response
	if k != nil {
		name = k.Name
	}
	if quiet, ok := s.denials.MayLog(now); ok {
		s.logger.Warn("denied a request", "remote_addr", ctx.RemoteAddr(), "status", resp.StatusCode(), "call", c.String(), "key", name,
			"request_id", s.loggedID(id), "more_not_logged", quiet)
	}
	if s.cfg.Audit == nil || k == nil {
		return
	}
	s.cfg.Audit.Denied(now, func() trail.Denial {
		return trail.Denial{
			At: now, Key: name, From: door.SourceOf(ctx.RemoteAddr()), Call: c.String(), Status: resp.StatusCode(), RequestID: s.loggedID(id),
			Answer: bytes.Clone(resp.Body()),
		}
	})
}
