package exchange

import (
	"time"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/meter"
)

// Call describes one call of the API.
type Call struct {
	Name string // the label of its metrics, and its operationId in openapi.yaml
	// Pattern is its method and path. GET includes HEAD, whose answer is written without a body. A path may have one
	// variable, in braces: a task's id, possibly with more path after it, or the last part.
	Pattern string
	Roles   keyring.Roles // the roles that may make it
	Is      trait
	// Answer answers it on this node.
	Answer func(*Request)
	// Held returns how long the leader may hold the request; 0: it answers at once. Held does not validate the
	// request; the leader does. nil: it is never held.
	Held func(*Request) time.Duration
	// Here reports whether the node that the request reaches answers it, even if it is not the leader. nil: the trait
	// Local decides.
	Here func(*Request) bool
	// TakeOver, unless it is nil, is called when the request has been answered. If it returns true, it has taken over
	// the connection, and sends and counts the answer itself.
	TakeOver func(*Request) bool

	counts meter.Call
}

// trait is a set of properties of a call.
type trait uint16

const (
	// Mutation says that the call may change the state.
	Mutation trait = 1 << iota
	// Local says that the node that the call reaches answers it, even if it is not the leader.
	Local
	// Uncounted says that the call does not count for a key's rate, because a worker whose extends were refused would
	// lose its leases. Whether a batch counts depends on its ops.
	Uncounted
	// Whole says that the call concerns all task types at once, so that a key with task_types must not make it. For
	// other calls the types are checked when they are answered.
	Whole
	// Probe says that unknown parameters are ignored.
	Probe
	// Always says that the call is answered even while the server drains.
	Always
	// AnyHost says that the call is answered whatever its Host header is.
	AnyHost
	// Batched says that the body has ops, each of which stands for a call.
	Batched
	// Slow says that the leader may take up to SlowTime.
	Slow
	// Leaderless says that, if there is no leader, the node that the call reaches answers it.
	Leaderless
	// Preflight says that the call asks which methods a path has.
	Preflight
	// Linked says that pages of other origins may link to the call, because every client gets the same answer.
	Linked
	// Unkept says that the answer must not be cached anywhere, whatever it is.
	Unkept
	// Bare says that the call has no parameters of its own.
	Bare
	// Long says that the call may read much more than it shows, so that only a few may run at a time.
	Long
)

// SlowTime bounds a slow call on the leader, which then answers with what it has done. The entry under way may take
// up to Config.Wait longer.
const SlowTime = 25 * time.Second

// Has reports whether the call has one of the traits.
func (c *Call) Has(t trait) bool { return c.Is&t != 0 }

// answer answers the request on this node.
func (c *Call) answer(r *Request) {
	if !c.Has(Bare) || r.NoParams() {
		c.Answer(r)
	}
}

// String returns the name.
func (c *Call) String() string { return c.Name }

// table holds the calls of a server. It is never changed.
type table struct {
	All   []*Call
	paths pathTable
	none  *Call // for an unknown path or method
	// ops are the calls that an op of a batch may stand for.
	ops struct{ submit, claim, complete, fail, extend, release, retry, cancel, delete, unknown *Call }
}

// newTable returns the table of calls and registers them in metrics.
func newTable(calls []Call, metrics *meter.Metrics) *table {
	t := &table{none: &Call{Name: "none", Roles: keyring.EveryRole, Is: Local}}
	t.none.counts = metrics.Call(t.none.Name)
	options := &Call{Name: "options", Roles: keyring.Anybody, Is: Local | Preflight, Answer: (*Request).options}
	for i := range calls {
		t.All = append(t.All, &calls[i])
	}
	t.All = append(t.All, options)
	byName := make(map[string]*Call)
	for _, c := range t.All {
		c.counts = metrics.Call(c.Name)
		byName[c.Name] = c
	}
	t.paths = newPaths(t.All, options, t.none)
	o := &t.ops
	o.submit, o.claim, o.complete = byName["submit_tasks"], byName["claim_tasks"], byName["complete_task"]
	o.fail, o.extend, o.release = byName["fail_task"], byName["extend_task"], byName["release_task"]
	o.retry, o.cancel, o.delete = byName["retry_task"], byName["cancel_task"], byName["delete_task"]
	o.unknown = &Call{Name: "unknown", Roles: keyring.Operators, Is: Mutation} // unknown ops require the operator role
	return t
}

// ofOp returns the call that an op of a batch stands for.
func (t *table) ofOp(op callbody.Body) *Call {
	switch op.(type) {
	case *callbody.One:
		return t.ops.submit
	case *callbody.Claim:
		return t.ops.claim
	case *callbody.Complete:
		return t.ops.complete
	case *callbody.Fail:
		return t.ops.fail
	case *callbody.Extend:
		return t.ops.extend
	case *callbody.Release:
		return t.ops.release
	case *callbody.Retry:
		return t.ops.retry
	case *callbody.Cancel:
		return t.ops.cancel
	case *callbody.Delete:
		return t.ops.delete
	}
	return t.ops.unknown
}
