package api

import (
	"time"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/meter"
)

// call is one call of the API: all that is known of it.
type call struct {
	name string // the label of its metrics, and its operationId in openapi.yaml
	// pattern is its method and its path. GET is HEAD, too: the answer's body is left
	// out when it is written. A path may have one variable, in braces: the id of a task,
	// with more behind it or not, or the last part.
	pattern string
	roles   keyring.Roles // who may make it
	is      trait
	// answer answers it with this node's own means.
	answer func(*request)
	// held returns for how long the leader may hold a request, 0: it answers at once.
	// What is wrong with the request is the leader's to say. nil: it is never held.
	held func(*request) time.Duration
	// here reports whether the node that a request reaches answers it, whichever that
	// is. nil: as trait local says.
	here func(*request) bool
	// takeOver, unless it is nil, is asked when a request has its answer, and reports
	// whether it has taken the connection over, to answer there and to count that.
	takeOver func(*request) bool

	counts meter.Call
}

// trait is a set of what may be so of a call.
type trait uint16

const (
	// mutation: it may change the state.
	mutation trait = 1 << iota
	// local: the node that it reaches answers it, whichever that is.
	local
	// uncounted: it is not counted against a key's rate, for a worker that may not
	// extend would lose its lease. That a batch is counted depends on its ops.
	uncounted
	// whole: it is about all task types at once, so a key with task_types may not make
	// it. What other calls touch is looked at when they are answered.
	whole
	// probe: parameters that it does not have do not matter.
	probe
	// always: it is answered while the server drains.
	always
	// anyHost: it is answered under any Host.
	anyHost
	// batched: its body has ops, each of which stands for a call.
	batched
	// slow: the leader takes its time, up to slowTime.
	slow
	// leaderless: the node that it reaches answers it if there is no leader.
	leaderless
	// preflight: it asks which methods a path has.
	preflight
	// linked: pages of other origins may lead a browser there, as it tells the same to everybody.
	linked
	// unkept: nobody on the way may keep its answer, whatever it is.
	unkept
)

// slowTime is for how long the leader goes on with a call that is slow; then it answers
// what it has done. The entry that it is in takes up to hostConfig.Wait more.
const slowTime = 25 * time.Second

func (c *call) has(t trait) bool { return c.is&t != 0 }

func (c *call) String() string { return c.name }

// table is the calls of a server. It is never changed.
type table struct {
	all   []*call
	paths pathTable
	none  *call // no such path or method
	// ops are the calls that an op of a batch may stand for.
	ops struct{ submit, claim, complete, fail, extend, release, retry, cancel, delete, unknown *call }
}

// newTable returns the table of calls, which are counted by metrics.
func newTable(calls []call, metrics *meter.Metrics) *table {
	t := &table{none: &call{name: "none", roles: keyring.EveryRole, is: local}}
	t.none.counts = metrics.Call(t.none.name)
	options := &call{name: "options", roles: keyring.Anybody, is: local | preflight, answer: (*request).options}
	for i := range calls {
		t.all = append(t.all, &calls[i])
	}
	t.all = append(t.all, options)
	byName := make(map[string]*call)
	for _, c := range t.all {
		c.counts = metrics.Call(c.name)
		byName[c.name] = c
	}
	t.paths = newPaths(t.all, options, t.none)
	o := &t.ops
	o.submit, o.claim, o.complete = byName["submit_tasks"], byName["claim_tasks"], byName["complete_task"]
	o.fail, o.extend, o.release = byName["fail_task"], byName["extend_task"], byName["release_task"]
	o.retry, o.cancel, o.delete = byName["retry_task"], byName["cancel_task"], byName["delete_task"]
	o.unknown = &call{name: "unknown", roles: keyring.Operators, is: mutation} // what nobody thought of is the operator's
	return t
}

// ofOp returns the call that an op of a batch stands for.
func (t *table) ofOp(op callbody.Body) *call {
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
