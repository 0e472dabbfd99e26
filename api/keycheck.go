package api

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
)

// The headers in which a request that is passed on says who made it. They are
// read from the peer port alone: the public port hears them from anybody.
const (
	headerKey   = "X-Claimq-Key"
	headerRole  = "X-Claimq-Role"
	headerTypes = "X-Claimq-Types"
)

// challenge is what a 401 says is wanted.
const challenge = `Bearer realm="claimq"`

// headerAPIKey is X-API-Key as fasthttp spells it.
const headerAPIKey = "X-Api-Key"

// bearer is what Authorization begins with. It is never changed.
var bearer = []byte("Bearer ")

// authenticate finds out who makes a request that came from outside, and whether
// they may. Without keys everybody may do everything.
func (r *request) authenticate() *refusal {
	keys := r.server.keys.Load()
	if keys == nil {
		return nil
	}
	c := &callRoles[r.target.call]
	if c.roles.has(roleNone) {
		return nil
	}
	text, bad := presentedKey(&r.http.Request.Header)
	failures := &r.server.metrics.authFailures
	switch {
	case bad:
		return failures.refuse(failMalformed, refuseUnauthorized("The API key is malformed"))
	case len(text) == 0:
		return failures.refuse(failMissing, refuseUnauthorized("Missing API key"))
	}
	sum := sha256.Sum256(text)
	k := keys.find(&sum)
	if k == nil {
		return failures.refuse(failUnknown, refuseUnauthorized("Unknown API key"))
	}
	r.who, r.key, r.role, r.onlyTypes = k, k.name, k.role, k.types
	if bad := r.mayCall(c); bad != nil {
		return bad
	}
	if c.unlimited || r.target.call == callBatch {
		return nil
	}
	return r.limit()
}

// identify takes who made a request from the node that passed it on, which has
// checked the key. One without a role comes from a node that is open.
func (r *request) identify() *refusal {
	h := &r.http.Request.Header
	name := h.Peek(headerRole)
	if len(name) == 0 {
		return nil
	}
	r.role, _ = parseRole(name)
	if r.role == roleOperator {
		r.key = string(h.Peek(headerKey)) // whose acts are told
	}
	if types := h.Peek(headerTypes); len(types) > 0 {
		r.onlyTypes = strings.Split(string(types), ",")
	}
	return r.mayCall(&callRoles[r.target.call])
}

// passIdentity tells the leader who made the request.
func (r *request) passIdentity(out *fasthttp.Request) {
	k := r.who
	if k == nil {
		return
	}
	out.Header.Set(headerKey, k.name)
	out.Header.Set(headerRole, roleNames[k.role])
	if len(k.types) > 0 {
		out.Header.Set(headerTypes, strings.Join(k.types, ","))
	}
}

// mayCall refuses a call that the key's role or its task types do not allow.
func (r *request) mayCall(c *callRole) *refusal {
	failures := &r.server.metrics.authFailures
	if !c.roles.has(r.role) {
		return failures.refuse(failRole, refuseRole(r.role, callNames[r.target.call], c.roles))
	}
	if c.whole && len(r.onlyTypes) > 0 {
		return failures.refuse(failType, &refusal{
			code: wire.CodeForbidden, text: "The call " + callNames[r.target.call] + " is about all task types, and this key has only some",
			advice: "Use a key without task_types",
		})
	}
	return nil
}

// mayBatch refuses a batch that has an op which the key's role does not allow,
// and counts the batch, once, unless all its ops are never counted. It is for
// requests that have a role.
func (r *request) mayBatch() *refusal {
	req, bad := decodeBatch(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		if r.who != nil {
			if over := r.limit(); over != nil {
				return over
			}
		}
		return bad
	}
	counted := false
	for i, op := range req.ops {
		call := opCall(op)
		c := &callRoles[call]
		counted = counted || !c.unlimited
		if !c.roles.has(r.role) {
			f := refuseRole(r.role, callNames[call], c.roles)
			f.field = "ops[" + strconv.Itoa(i) + "].op"
			return r.server.metrics.authFailures.refuse(failRole, f)
		}
	}
	r.ops = &req
	if counted && r.who != nil {
		return r.limit()
	}
	return nil
}

// opCall returns the call that an op of a batch stands for.
func opCall(op callBody) call {
	switch op.(type) {
	case *submitBody:
		return callSubmit
	case *claimRequest:
		return callClaim
	case *completeBody:
		return callComplete
	case *failBody:
		return callFail
	case *extendBody:
		return callExtend
	case *releaseBody:
		return callRelease
	case *retryBody:
		return callRetry
	case *cancelBody:
		return callCancel
	case *deleteBody:
		return callDelete
	}
	return callReload // what nobody thought of is the operator's
}

// presentedKey returns the key that a request was sent with, empty if there was
// none. bad says that what was sent cannot be a key.
func presentedKey(h *fasthttp.RequestHeader) (key []byte, bad bool) {
	key = h.Peek(headerAPIKey)
	if len(key) == 0 {
		authorization := h.Peek(fasthttp.HeaderAuthorization)
		if len(authorization) == 0 {
			return nil, false
		}
		n := min(len(authorization), len(bearer))
		if !bytes.EqualFold(authorization[:n], bearer) {
			return nil, true
		}
		key = authorization[n:]
	}
	return key, !validKeyText(key)
}

func refuseUnauthorized(text string) *refusal {
	return &refusal{
		code: wire.CodeUnauthorized, text: text,
		advice: "Send a key that this server knows, as X-API-Key: KEY or Authorization: Bearer KEY",
	}
}

// refuseRole names the role that a call needs.
func refuseRole(r role, call string, needs roles) *refusal {
	least := needs.least()
	return &refusal{
		code: wire.CodeForbidden, text: "The call " + call + " needs the role " + least + ", and this key has the role " + roleNames[r],
		advice:  "Use a key with that role, or with the role operator",
		details: `,"role":"` + least + `"`,
	}
}
