package api

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

// headerKey has the API key of a request that is passed on by a node that knows
// the key, and has counted the request. It is read from the peer port alone: the
// public port hears it from anybody.
const headerKey = "X-Claimq-Key"

// headerAPIKey is X-API-Key as fasthttp spells it.
const headerAPIKey = "X-Api-Key"

// bearer is what Authorization begins with. It is never changed.
var bearer = []byte("Bearer ")

// authenticate finds out who makes a request, and whether they may, by this
// node's own keys. Without keys everybody may do everything.
func (r *request) authenticate() *refuse.Refusal {
	keys := r.server.keys.Load()
	c := r.target.call
	if c.roles.Has(keyring.RoleNone) {
		return nil
	}
	text, bad := r.sentKey()
	failures := &r.server.metrics.AuthFailures
	switch {
	case keys == nil && r.passed:
		return failures.Refuse(keyring.FailDiffer, keyring.Differ("This node leads and has no API keys, and the node that passed the request on has"))
	case keys == nil:
		return r.readOnlyOpen()
	case bad:
		return failures.Refuse(keyring.FailMalformed, keyring.Unauthorized("The API key is malformed"))
	case len(text) == 0 && r.forwarded:
		return failures.Refuse(keyring.FailMissing, keyring.Unauthorized("Missing API key: the node that passed the request on may have no keys, but the leader has"))
	case len(text) == 0:
		return failures.Refuse(keyring.FailMissing, keyring.Unauthorized("Missing API key"))
	}
	k, in, why, refused := r.server.who(keys, text, r.start)
	switch {
	case refused != nil && why == keyring.FailUnknown && r.passed:
		return failures.Refuse(keyring.FailDiffer, keyring.Differ("The leader does not know the API key, and the node that passed the request on does"))
	case refused != nil:
		return failures.Refuse(why, refused)
	}
	from := r.source()
	if why, bad := k.Bars(r.start, from); bad != nil {
		r.barred = k
		return failures.Refuse(why, bad)
	}
	if !r.passed { // else the other node has noted it
		k.Used(r.start, from)
	}
	r.who, r.key, r.roles, r.onlyTypes, r.in = k, k.Name, k.Roles, k.Types, in
	if in != nil {
		if bad := r.fromPage(); bad != nil {
			return bad
		}
	}
	if bad := r.mayCall(c); bad != nil {
		return bad
	}
	if c.is&uncounted != 0 {
		r.settles = c.has(mutation)
		return nil
	}
	if c.has(batched) {
		return nil
	}
	return r.limit()
}

// sentWith returns the key that a request of the public port was sent with, nil if it
// is not known. A key that is of no use, or none, is refused.
func (s *host) sentWith(t *keyring.Ring, h *fasthttp.RequestHeader, now time.Time, from netip.Addr) (k *keyring.Caller, why keyring.Failure, bad *refuse.Refusal) {
	text, malformed := s.presentedKey(h)
	switch {
	case malformed:
		return nil, keyring.FailMalformed, keyring.Unauthorized("The API key is malformed")
	case len(text) == 0:
		return nil, keyring.FailMissing, keyring.Unauthorized("Missing API key")
	}
	if k, _, why, bad = s.who(t, text, now); bad != nil {
		return nil, why, bad
	}
	if why, bad = k.Bars(now, from); bad != nil {
		return k, why, bad
	}
	return k, 0, nil
}

// sentKey returns the key that the request was made with, empty if there was
// none. bad says that what was sent cannot be a key. It notes whether another node
// knows the key.
func (r *request) sentKey() (key []byte, bad bool) {
	h := &r.http.Request.Header
	if r.forwarded {
		if key = h.Peek(headerKey); len(key) > 0 {
			r.passed = true
			return key, !keyring.ValidText(key) && !login.IsText(key)
		}
	}
	return r.server.presentedKey(h)
}

// passKey tells the leader who makes the request, who looks the key up by itself:
// what a node says of a key does not count. A node without keys passes on what the
// client sent.
func (r *request) passKey(out *fasthttp.Request) {
	key, bad := r.server.presentedKey(&r.http.Request.Header)
	if bad {
		key = nil
	}
	passKey(out, key, r.who != nil)
}

// passKey is request.passKey of a key, empty for none, that this node knows or not.
func passKey(out *fasthttp.Request, key []byte, known bool) {
	switch {
	case known:
		out.Header.SetBytesV(headerKey, key)
	case len(key) > 0:
		out.Header.SetBytesV(headerAPIKey, key)
	}
}

// mayCall refuses a call that the key's role or its task types do not allow.
func (r *request) mayCall(c *call) *refuse.Refusal {
	failures := &r.server.metrics.AuthFailures
	if c.roles&r.roles == 0 {
		return failures.Refuse(keyring.FailRole, keyring.NoRole(r.roles, r.target.call.String(), c.roles))
	}
	if c.is&whole != 0 && len(r.onlyTypes) > 0 {
		return failures.Refuse(keyring.FailType, &refuse.Refusal{
			Code: wire.CodeForbidden, Text: "The call " + r.target.call.String() + " is about all task types, and this key has only some",
			Advice: "Use a key without task_types",
		})
	}
	return nil
}

// mayBatch refuses a batch that has an op which the key's role does not allow,
// and counts the batch, once, unless all its ops settle. It is for
// requests that have a role.
func (r *request) mayBatch() *refuse.Refusal {
	req, bad := callbody.DecodeBatch(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		if r.who != nil {
			if over := r.limit(); over != nil {
				return over
			}
		}
		return bad
	}
	counted := false
	for i, op := range req.Ops {
		c := r.server.calls.ofOp(op)
		counted = counted || c.is&uncounted == 0
		if c.roles&r.roles == 0 {
			f := keyring.NoRole(r.roles, c.name, c.roles)
			f.Field = "ops[" + strconv.Itoa(i) + "].op"
			return r.server.metrics.AuthFailures.Refuse(keyring.FailRole, f)
		}
	}
	r.ops = &req
	if r.settles = !counted; counted && r.who != nil {
		return r.limit()
	}
	return nil
}

// presentedKey returns the key that a request was sent with, or what stands for it if the
// page sent it; empty if there was none. bad says that what was sent cannot be a key.
func (s *host) presentedKey(h *fasthttp.RequestHeader) (key []byte, bad bool) {
	key = h.Peek(headerAPIKey)
	if len(key) == 0 {
		authorization := h.Peek(fasthttp.HeaderAuthorization)
		if len(authorization) == 0 {
			return s.pageKey(h), false
		}
		n := min(len(authorization), len(bearer))
		if !bytes.EqualFold(authorization[:n], bearer) {
			return nil, true
		}
		key = authorization[n:]
	}
	return key, !keyring.ValidText(key)
}

// refuseEnded is the refusal of a request whose key was of no use any more while it waited.
func (s *host) refuseEnded(ended *lasting.Ended) *refuse.Refusal {
	return s.metrics.AuthFailures.Refuse(ended.Why, ended.Refusal)
}
