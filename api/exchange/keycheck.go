package exchange

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/login"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// HeaderKey holds the API key of a request that is forwarded by a node that knows the key and has counted the
// request. It is read only on the peer port, because on the public port any client could send it.
const HeaderKey = "X-Claimq-Key"

// HeaderAPIKey is X-API-Key as fasthttp spells it.
const HeaderAPIKey = "X-Api-Key"

// bearer is the beginning of Authorization.
var bearer = []byte("Bearer ")

// authenticate finds the key of a request in this node's own keys, and checks whether it may make the call. Without
// keys every client may do everything.
func (r *Request) authenticate() *refuse.Refusal {
	keys := r.Server.Keys.Load()
	c := r.Target.call
	if c.Roles.Has(keyring.RoleNone) {
		return nil
	}
	text, bad := r.sentKey()
	failures := &r.Server.Metrics.AuthFailures
	switch {
	case keys == nil && r.passed:
		return failures.Refuse(keyring.FailDiffer, keyring.Differ("This node leads and has no API keys, and the node that passed the request on has"))
	case keys == nil:
		return r.readOnlyOpen()
	case bad:
		return failures.Refuse(keyring.FailMalformed, keyring.Unauthorized("The API key is malformed"))
	case len(text) == 0 && r.Forwarded:
		return failures.Refuse(keyring.FailMissing, keyring.Unauthorized("Missing API key: the node that passed the request on may have no keys, but the leader has"))
	case len(text) == 0:
		return failures.Refuse(keyring.FailMissing, keyring.Unauthorized("Missing API key"))
	}
	k, in, why, refused := r.Server.Who(keys, text, r.Start)
	switch {
	case refused != nil && why == keyring.FailUnknown && r.passed:
		return failures.Refuse(keyring.FailDiffer, keyring.Differ("The leader does not know the API key, and the node that passed the request on does"))
	case refused != nil:
		return failures.Refuse(why, refused)
	}
	from := r.Source()
	if why, bad := k.Bars(r.Start, from); bad != nil {
		r.Barred = k
		return failures.Refuse(why, bad)
	}
	if !r.passed { // otherwise the other node has noted it
		k.Used(r.Start, from)
	}
	r.Who, r.key, r.roles, r.onlyTypes, r.in = k, k.Name, k.Roles, k.Types, in
	if in != nil {
		if bad := r.fromPage(); bad != nil {
			return bad
		}
	}
	if bad := r.mayCall(c); bad != nil {
		return bad
	}
	if c.Is&Uncounted != 0 {
		r.settles = c.Has(Mutation)
		return nil
	}
	if c.Has(Batched) {
		return nil
	}
	return r.limit()
}

// sentWith returns the key that a request of the public port was sent with, nil if it is unknown. A missing or
// invalid key is refused.
func (s *Host) sentWith(t *keyring.Ring, h *fasthttp.RequestHeader, now time.Time, from netip.Addr) (k *keyring.Caller, why keyring.Failure, bad *refuse.Refusal) {
	text, malformed := s.presentedKey(h)
	switch {
	case malformed:
		return nil, keyring.FailMalformed, keyring.Unauthorized("The API key is malformed")
	case len(text) == 0:
		return nil, keyring.FailMissing, keyring.Unauthorized("Missing API key")
	}
	if k, _, why, bad = s.Who(t, text, now); bad != nil {
		return nil, why, bad
	}
	if why, bad = k.Bars(now, from); bad != nil {
		return k, why, bad
	}
	return k, 0, nil
}

// sentKey returns the key that the request was made with, empty if there is none. bad says that it cannot be a key.
// It also notes whether another node knows the key.
func (r *Request) sentKey() (key []byte, bad bool) {
	h := &r.HTTP.Request.Header
	if r.Forwarded {
		if key = h.Peek(HeaderKey); len(key) > 0 {
			r.passed = true
			return key, !keyring.ValidText(key) && !login.IsText(key)
		}
	}
	return r.Server.presentedKey(h)
}

// passKey sends the key to the leader, which looks it up itself, because it does not trust what a node says about a
// key. A node without keys forwards what the client sent.
func (r *Request) passKey(out *fasthttp.Request) {
	key, bad := r.Server.presentedKey(&r.HTTP.Request.Header)
	if bad {
		key = nil
	}
	passKey(out, key, r.Who != nil)
}

// passKey sets the header for a key, which may be empty; known says whether this node knows it.
func passKey(out *fasthttp.Request, key []byte, known bool) {
	switch {
	case known:
		out.Header.SetBytesV(HeaderKey, key)
	case len(key) > 0:
		out.Header.SetBytesV(HeaderAPIKey, key)
	}
}

// mayCall refuses a call that the key's role or task types do not permit.
func (r *Request) mayCall(c *Call) *refuse.Refusal {
	failures := &r.Server.Metrics.AuthFailures
	if c.Roles&r.roles == 0 {
		return failures.Refuse(keyring.FailRole, keyring.NoRole(r.roles, r.Target.call.String(), c.Roles))
	}
	if c.Is&Whole != 0 && len(r.onlyTypes) > 0 {
		return failures.Refuse(keyring.FailType, refuse.New(wire.CodeForbidden, "The call "+r.Target.call.String()+" is about all task types, and this key has only some",
			"Use a key without task_types"))
	}
	return nil
}

// mayBatch refuses a batch with an op that the key's role does not permit, and counts the batch, once, unless all its
// ops settle. The request must have a role.
func (r *Request) mayBatch() *refuse.Refusal {
	req, bad := callbody.DecodeBatch(r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		if r.Who != nil {
			if over := r.limit(); over != nil {
				return over
			}
		}
		return bad
	}
	counted := false
	for i, op := range req.Ops {
		c := r.Server.Calls.ofOp(op)
		counted = counted || c.Is&Uncounted == 0
		if c.Roles&r.roles == 0 {
			f := keyring.NoRole(r.roles, c.Name, c.Roles)
			f.Field = "ops[" + strconv.Itoa(i) + "].op"
			return r.Server.Metrics.AuthFailures.Refuse(keyring.FailRole, f)
		}
	}
	r.Ops = &req
	if r.settles = !counted; counted && r.Who != nil {
		return r.limit()
	}
	return nil
}

// presentedKey returns the key that a request was sent with, or its login if the page sent it; empty if there is
// none. bad says that it cannot be a key.
func (s *Host) presentedKey(h *fasthttp.RequestHeader) (key []byte, bad bool) {
	key = h.Peek(HeaderAPIKey)
	if len(key) == 0 {
		authorization := h.Peek(fasthttp.HeaderAuthorization)
		if len(authorization) == 0 {
			return s.PageKey(h), false
		}
		n := min(len(authorization), len(bearer))
		if !bytes.EqualFold(authorization[:n], bearer) {
			return nil, true
		}
		key = authorization[n:]
	}
	return key, !keyring.ValidText(key)
}

// RefuseEnded refuses a request whose key became invalid while it waited.
func (s *Host) RefuseEnded(ended *lasting.Ended) *refuse.Refusal {
	return s.Metrics.AuthFailures.Refuse(ended.Why, ended.Refusal)
}
