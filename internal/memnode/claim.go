package memnode

import (
	"context"
	"slices"
	"time"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// waiter is a waiting claim.
type waiter struct {
	claim  command.ClaimNext
	done   chan struct{} // closed when the fields below are set
	result nodes.Proposed
	err    error
	over   bool // the same request without a wait has ended this wait
}

// Claim is Propose for a claim that waits, in order of arrival, until there is something to claim. wait is in the
// program's time.
func (n *Node) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, _ func(context.Context) (func(), error)) (nodes.Proposed, error) {
	n.Mu.Lock()
	if err := n.catchUp(); err != nil || wait <= 0 || n.Machine.Claimable(cmd, n.Stamp) {
		defer n.Mu.Unlock()
		return n.propose(cmd)
	}
	w := &waiter{claim: cmd, done: make(chan struct{})}
	n.waiters = append(n.waiters, w)
	n.Mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		if n.leave(w) {
			return n.Propose(caller, cmd)
		}
	case <-caller.Done():
		if n.leave(w) {
			return nodes.Proposed{}, context.Cause(caller)
		}
	}
	if w.over {
		return n.Propose(caller, cmd)
	}
	return w.result, w.err
}

// Waiting returns the number of waiting claims.
func (n *Node) Waiting() int {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return len(n.waiters)
}

// endWaits ends the waits of the claims with that request id, as a cluster does. The caller holds Mu.
func (n *Node) endWaits(requestID string) {
	n.waiters = slices.DeleteFunc(n.waiters, func(w *waiter) bool {
		if requestID == "" || w.claim.RequestID != requestID {
			return false
		}
		w.over = true
		close(w.done)
		return true
	})
}

// leave ends the wait of w. It returns false if w was answered before.
func (n *Node) leave(w *waiter) bool {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	at := slices.Index(n.waiters, w)
	if at >= 0 {
		n.waiters = slices.Delete(n.waiters, at, at+1)
	}
	return at >= 0
}

// serve answers waiting claims in order of arrival until no further one finds a task. One answer may end several
// waits, if they sent the same request. The caller holds Mu.
func (n *Node) serve() {
	for again := true; again; {
		again = false
		n.waiters = slices.DeleteFunc(n.waiters, func(w *waiter) bool {
			if !n.Machine.Claimable(w.claim, n.Stamp) {
				return false
			}
			w.result, w.err = n.Apply(w.claim)
			if r := &w.result.Result; w.err == nil && r.Code == "" && len(r.Claims) == 0 {
				return false
			}
			close(w.done)
			again = true
			return true
		})
	}
}
