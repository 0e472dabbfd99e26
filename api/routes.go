package api

import (
	"bytes"

	"github.com/claimq/claimq/api/wire"
)

// call is one call of the API; it is also the label of its metrics.
type call uint8

const (
	callNone call = iota // no such path or method
	callSubmit
	callClaim
	callClaimTask
	callComplete
	callFail
	callExtend
	callRelease
	callRetry
	callGet
	callGetByKey
	callList
	callDelete
	callRemoveNode
	callStats
	callCluster
	callOptions
	callHealth
	callReady
	callMetrics
	callCount
)

var callNames = [callCount]string{
	"none", "submit", "claim", "claim_task", "complete", "fail", "extend", "release", "retry",
	"get", "get_by_key", "list", "delete", "remove_node", "stats", "cluster", "options", "health", "ready", "metrics",
}

// local reports whether the call is always answered by the node it reached.
func (c call) local() bool { return c >= callOptions || c == callNone }

// mutation reports whether the call may change the state.
func (c call) mutation() bool {
	return c >= callSubmit && c <= callRetry || c == callDelete || c == callRemoveNode
}

// verbs are the calls POST /api/tasks/{id}/VERB.
var verbs = map[string]call{
	"claim": callClaimTask, "complete": callComplete, "fail": callFail,
	"extend": callExtend, "release": callRelease, "retry": callRetry,
}

// The values of Allow.
const (
	allowGet    = "GET, HEAD, OPTIONS"
	allowPost   = "POST, OPTIONS"
	allowList   = "GET, HEAD, POST, OPTIONS"
	allowOneGet = "GET, HEAD, DELETE, OPTIONS"
)

// target is what a request is about.
type target struct {
	call  call
	id    uint64
	rest  []byte // of get_by_key: the key, still percent-encoded
	allow string // the path's methods, "" if there is no such path
}

// fixed are the paths without variables and the calls of their methods.
var fixed = map[string]struct {
	get, post call
	allow     string
}{
	"/api/tasks":          {callList, callSubmit, allowList},
	"/api/tasks/claim":    {callNone, callClaim, allowPost},
	"/api/stats":          {callStats, callNone, allowGet},
	"/api/cluster":        {callCluster, callNone, allowGet},
	"/api/cluster/remove": {callNone, callRemoveNode, allowPost},
	"/healthz":            {callHealth, callNone, allowGet},
	"/readyz":             {callReady, callNone, allowGet},
	"/metrics":            {callMetrics, callNone, allowGet},
}

var (
	tasksPrefix = []byte("/api/tasks/")
	byKeyPrefix = []byte("by-key/")
)

// route finds the call of a method and a path as sent. A refusal is one of
// not_found, method_not_allowed, or an id that is none.
func route(method, path []byte) (target, *refusal) {
	if f, ok := fixed[string(path)]; ok {
		return pick(method, target{allow: f.allow}, f.get, f.post, callNone)
	}
	rest, ok := bytes.CutPrefix(path, tasksPrefix)
	if !ok {
		return target{}, refuse(wire.CodeNotFound)
	}
	if key, ok := bytes.CutPrefix(rest, byKeyPrefix); ok {
		return pick(method, target{allow: allowGet, rest: key}, callGetByKey, callNone, callNone)
	}
	idText, verb, hasVerb := bytes.Cut(rest, []byte{'/'})
	var t target
	var refused *refusal
	if hasVerb {
		c, ok := verbs[string(verb)]
		if !ok {
			return target{}, refuse(wire.CodeNotFound)
		}
		t, refused = pick(method, target{allow: allowPost}, callNone, c, callNone)
	} else {
		t, refused = pick(method, target{allow: allowOneGet}, callGet, callNone, callDelete)
	}
	if refused != nil || t.call == callOptions {
		return t, refused
	}
	id, ok := parseID(idText)
	if !ok {
		return t, refuseParam("id", "Invalid id: an integer from 1 to 9007199254740991, in digits, is allowed")
	}
	t.id = id
	return t, nil
}

// pick chooses the call by the method. HEAD is GET: the answer's body is left
// out when it is written.
func pick(method []byte, t target, get, post, del call) (target, *refusal) {
	switch string(method) {
	case "GET", "HEAD":
		t.call = get
	case "POST":
		t.call = post
	case "DELETE":
		t.call = del
	case "OPTIONS":
		t.call = callOptions
	}
	if t.call == callNone {
		return t, refuse(wire.CodeMethodNotAllowed)
	}
	return t, nil
}

// parseID reads an id in its canonical form: digits, no leading zero.
func parseID(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 16 || b[0] == '0' {
		return 0, false
	}
	var id uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = id*10 + uint64(c-'0')
	}
	return id, id <= idMax
}
