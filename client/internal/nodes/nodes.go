// Package nodes decides which node of a cluster gets a client's next request: the leader that a node named, or the
// configured endpoint that answered last.
//
// It sends nothing itself; the caller reports the outcome of each request.
package nodes

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// shunMin is the time for which an address that gave no answer is avoided while another can be asked: the node
	// may have just died, or its advertised address cannot be reached from here. It doubles with each failure in a
	// row, up to shunMax.
	shunMin = 3 * time.Second
	shunMax = 2 * time.Minute
	// probeMax limits how long the one call that tries such an address keeps the others from it, if it does not
	// report its outcome.
	probeMax = 10 * time.Second
	// addressesMax bounds the known addresses.
	addressesMax = 256
)

// Nodes decides which node gets a request. It is safe for concurrent use.
type Nodes struct {
	mu        sync.Mutex // guards the fields below
	endpoints []string   // as configured; at least one
	current   int        // index of the endpoint that answered last
	leader    string     // base URL that a node named and that has answered; "": none
	shunUntil time.Time  // leaders are not followed before
	known     map[string]*address
}

// address is the state of one address.
type address struct {
	answered bool      // since it last gave no answer
	failures int       // in a row
	probing  bool      // one call is trying it
	shunned  time.Time // it is avoided until then while another can be asked
	held     time.Time // the same, because the node asked for it
}

// New returns the nodes of endpoints: at least one, each a base URL. It keeps the slice.
func New(endpoints []string) *Nodes {
	return &Nodes{endpoints: endpoints, known: map[string]*address{}}
}

// Endpoints returns the configured base URLs.
func (n *Nodes) Endpoints() []string { return n.endpoints }

// Pick returns the base URL for a request, and whether to ask that node for the leader's address instead of having
// the call forwarded.
func (n *Nodes) Pick(now time.Time) (base string, redirect bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	redirect = !now.Before(n.shunUntil)
	if n.leader != "" && redirect {
		if l := n.known[n.leader]; l == nil || !now.Before(l.held) {
			return n.leader, true
		}
		redirect = false // the node would name it again
	}
	n.current = n.nextLocked(now)
	base = n.endpoints[n.current]
	if a := n.known[base]; a != nil && a.failures > 0 {
		a.probe(now)
	}
	return base, redirect
}

// nextLocked returns the index of the first endpoint, starting with the current one, that can be asked, or else of
// the one that can be asked first. The caller holds the lock.
func (n *Nodes) nextLocked(now time.Time) int {
	best, soonest := n.current, time.Time{}
	for i := range n.endpoints {
		i = (n.current + i) % len(n.endpoints)
		from := n.freeLocked(n.endpoints[i])
		if !now.Before(from) {
			return i
		}
		if soonest.IsZero() || from.Before(soonest) {
			best, soonest = i, from
		}
	}
	return best
}

// freeLocked returns the time from which the address can be asked.
func (n *Nodes) freeLocked(base string) time.Time {
	a := n.known[base]
	switch {
	case a == nil:
		return time.Time{}
	case a.held.After(a.shunned):
		return a.held
	}
	return a.shunned
}

// probe notes that a call tries the address, so that others avoid it meanwhile.
func (a *address) probe(now time.Time) {
	if !now.Before(a.shunned) {
		a.probing, a.shunned = true, now.Add(probeMax)
	}
}

// Follow takes the leader's address that the node at from named. It returns the base URL to ask, or "" if the call
// should rather be forwarded, because another call is finding out whether the address can be reached, or has just
// found that it cannot. ok is false if the address is of no use.
func (n *Nodes) Follow(from, location string, now time.Time) (to string, ok bool) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", false
	}
	// An API key that was sent encrypted must not be sent in the clear.
	if strings.HasPrefix(from, "https://") && u.Scheme != "https" {
		return "", false
	}
	to = u.Scheme + "://" + u.Host
	if to == from {
		return "", false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.addressLocked(to)
	switch {
	case a.answered:
	case now.Before(a.shunned):
		if !a.probing && a.shunned.After(n.shunUntil) {
			n.shunUntil = a.shunned
		}
		return "", true
	default:
		a.probe(now)
	}
	return to, true
}

// addressLocked returns the state of an address. The caller holds the lock.
func (n *Nodes) addressLocked(base string) *address {
	a := n.known[base]
	if a == nil {
		if len(n.known) >= addressesMax {
			clear(n.known) // it is learned again
		}
		a = &address{}
		n.known[base] = a
	}
	return a
}

// Answered notes that the node at base gave any answer. followed says that another node had named it as the leader.
func (n *Nodes) Answered(base string, followed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if followed {
		n.leader = base
	}
	a := n.addressLocked(base)
	if !a.answered {
		*a = address{answered: true, held: a.held}
	}
}

// Silent notes that the node at base gave no answer. It is avoided for a while, longer with each failure in a row.
func (n *Nodes) Silent(base string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.addressLocked(base)
	if a.probing || !now.Before(a.shunned) { // otherwise a concurrent call has reported it
		d := shunMax
		if a.failures < 6 {
			d = min(shunMin<<a.failures, shunMax)
		}
		*a = address{failures: a.failures + 1, shunned: now.Add(d), held: a.held}
	}
	n.leaveLocked(base, a.shunned)
}

// Shun stops following leaders for a while.
func (n *Nodes) Shun(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader = ""
	n.shunUntil = now.Add(shunMin)
}

// Failed notes that the node at base gave no useful answer. A leader is not followed for a while; an endpoint is
// replaced by the next one.
func (n *Nodes) Failed(base string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaveLocked(base, now.Add(shunMin))
}

// leaveLocked sends the next calls elsewhere than to base. The caller holds the lock.
func (n *Nodes) leaveLocked(base string, until time.Time) {
	if base == n.leader || !n.isEndpoint(base) {
		if base == n.leader {
			n.leader = ""
		}
		if until.After(n.shunUntil) {
			n.shunUntil = until
		}
	}
	// Many calls may fail on one node at once; together they move on by one.
	if base == n.endpoints[n.current] {
		n.current = (n.current + 1) % len(n.endpoints)
	}
}

func (n *Nodes) isEndpoint(base string) bool {
	for _, e := range n.endpoints {
		if e == base {
			return true
		}
	}
	return false
}

// Hold notes that the node at base asks to be avoided for d. It does not affect other nodes.
func (n *Nodes) Hold(base string, d time.Duration, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addressLocked(base).held = now.Add(d)
}

// Wait returns the time until some endpoint does not ask to be avoided.
func (n *Nodes) Wait(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	least := time.Duration(-1)
	for _, e := range n.endpoints {
		var d time.Duration
		if a := n.known[e]; a != nil {
			d = max(a.held.Sub(now), 0)
		}
		if least < 0 || d < least {
			least = d
		}
	}
	return least
}

// Untrusted reports whether err is a TLS alert by which the server refuses this client's certificate, or requires
// one. In TLS 1.3 it comes after the client's handshake, in place of an answer, but the server has not read the
// request.
func Untrusted(err error) bool {
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return false
	}
	switch alert.Err.Error() { // crypto/tls exports no values for them
	case "tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority", "tls: unsupported certificate",
		"tls: expired certificate", "tls: revoked certificate", "tls: unknown certificate":
		return true
	}
	return false
}
