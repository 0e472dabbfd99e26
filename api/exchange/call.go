package exchange

import (
	"time"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/meter"
)

// Call is one call of the API: all that is known of it.
type Call struct {
	Name string // the label of its metrics, and its operationId in openapi.yaml
	// Pattern is its method and its path. GET is HEAD, too: the answer's body is left
	// out when it is written. A path may have one variable, in braces: the id of a task,
	// with more behind it or not, or the last part.
	Pattern string
	Roles   keyring.Roles // who may make it
	Is      trait
	// Answer answers it with this node's own means.
	Answer func(*Request)
	// Held returns for how long the leader may hold a request, 0: it answers at once.
	// What is wrong with the request is the leader's to say. nil: it is never held.
	Held func(*Request) time.Duration
	// Here reports whether the node that a request reaches answers it, whichever that
	// is. nil: as trait local says.
	Here func(*Request) bool
	// TakeOver, unless it is nil, is asked when a request has its answer, and reports
	// whether it has taken the connection over, to answer there and to count that.
	TakeOver func(*Request) bool

	counts meter.Call
}

// trait is a set of what may be so of a call.
type trait uint16

const (
	// Mutation says that it may change the state.
	Mutation trait = 1 << iota
	// Local says that the node that it reaches answers it, whichever that is.
	Local
	// Uncounted says that it is not counted against a key's rate, for a worker that may not
	// extend would lose its lease. That a batch is counted depends on its ops.
	Uncounted
	// Whole says that it is about all task types at once, so a key with task_types may not make
	// it. What other calls touch is looked at when they are answered.
	Whole
	// Probe says that parameters that it does not have do not matter.
	Probe
	// Always says that it is answered while the server drains.
	Always
	// AnyHost says that it is answered under any Host.
	AnyHost
	// Batched says that its body has ops, each of which stands for a call.
	Batched
	// Slow says that the leader takes its time, up to SlowTime.
	Slow
	// Leaderless says that the node that it reaches answers it if there is no leader.
	Leaderless
	// Preflight says that it asks which methods a path has.
	Preflight
	// Linked says that pages of other origins may lead a browser there, as it tells the same to everybody.
	Linked
	// Unkept says that nobody on the way may keep its answer, whatever it is.
	Unkept
	// Bare says that it has no parameters of its own.
	Bare
	// Long says that it may look at much more than it shows, so that few go on at a time.
	Long
)

// SlowTime is for how long the leader goes on with a call that is slow; then it answers
// what it has done. The entry that it is in takes up to Config.Wait more.
const SlowTime = 25 * time.Second

// Has reports whether the call has one of the traits.
func (c *Call) Has(t trait) bool { return c.Is&t != 0 }

// answer answers the request with this node's own means.
func (c *Call) answer(r *Request) {
	if !c.Has(Bare) || r.NoParams() {
		c.Answer(r)
	}
}

// String returns the name.
func (c *Call) String() string { return c.Name }

// table is the calls of a server. It is never changed.
type table struct {
	All   []*Call
	paths pathTable
	none  *Call // no such path or method
	// Ops are the calls that an op of a batch may stand for.
	ops struct{ submit, claim, complete, fail, extend, release, retry, cancel, delete, unknown *Call }
}

// newTable returns the table of calls, which are counted by metrics.
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
	o.unknown = &Call{Name: "unknown", Roles: keyring.Operators, Is: Mutation} // what nobody thought of is the operator's
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
