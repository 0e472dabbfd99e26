package nodes

import (
	"net/url"
	"strings"
	"sync"
	"time"
)

// leaderShunned is for how long the client lets the nodes pass calls on after
// the leader that they named could not be reached: it has just died, or its
// advertised address means nothing here.
const leaderShunned = 3 * time.Second

// Nodes decides which node gets a request. It is safe for concurrent use.
type Nodes struct {
	mu        sync.Mutex // guards all below
	endpoints []string   // as configured; at least one
	current   int        // index of the endpoint to ask: the last that answered
	leader    string     // base URL that a node named, "" = none
	shunUntil time.Time  // no leader is followed before
}

// New returns the nodes of endpoints: at least one, each a base URL. It keeps the slice.
func New(endpoints []string) *Nodes { return &Nodes{endpoints: endpoints} }

// Endpoints returns the base URLs as configured.
func (n *Nodes) Endpoints() []string { return n.endpoints }

// Pick returns the base URL to send to, and whether to ask there for the
// leader's address in place of having the call passed on.
func (n *Nodes) Pick(now time.Time) (base string, redirect bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	redirect = !now.Before(n.shunUntil)
	if n.leader != "" && redirect {
		return n.leader, true
	}
	return n.endpoints[n.current], redirect
}

// Follow notes that the node at from named another as the leader. It reports
// false if that address is of no use.
func (n *Nodes) Follow(from, location string) bool {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	// An API key that was sent encrypted must not be sent in the clear.
	if strings.HasPrefix(from, "https://") && u.Scheme != "https" {
		return false
	}
	leader := u.Scheme + "://" + u.Host
	if leader == from {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader = leader
	return true
}

// Shun stops following leaders for a while.
func (n *Nodes) Shun(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader = ""
	n.shunUntil = now.Add(leaderShunned)
}

// Failed notes that the node at base gave no useful answer: a leader is not
// followed for a while, an endpoint makes way for the next.
func (n *Nodes) Failed(base string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if base == n.leader {
		n.leader = ""
		n.shunUntil = now.Add(leaderShunned)
	}
	// Many calls may fail on one node at once: they move on by one in all.
	if base == n.endpoints[n.current] {
		n.current = (n.current + 1) % len(n.endpoints)
	}
}
