package simnet

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Link is one direction between two hosts.
type Link struct{ From, To string }

// Weather determines the delays of messages. The zero value delays nothing.
type Weather struct {
	// Delay bounds each message's delay, which is drawn at random.
	Delay time.Duration
	// Late of a thousand messages take up to LateMax, and those that follow on the same
	// connection wait for them.
	Late    int
	LateMax time.Duration
	// Slow of a thousand directions of connections are always slow: each of their messages
	// takes up to SlowMax.
	Slow    int
	SlowMax time.Duration
	// After Torn of a thousand messages the connection breaks: the sender notices at once,
	// and the message may or may not arrive.
	Torn int
}

// Network connects hosts. Its methods are safe for concurrent use.
type Network struct {
	mu      sync.Mutex
	random  *rand.Rand // guarded by mu, like all fields below
	weather Weather
	opened  int // streams so far
	hosts   map[string]*Host
	streams map[*stream]struct{} // that may still be read from
	held    map[Link]bool        // true: cut
	changed *sync.Cond           // on mu: a link was released, a host appeared
}

// New returns a network without hosts. Delays are drawn from a source with that seed, in
// the order in which messages are sent.
func New(seed uint64, w Weather) *Network {
	n := &Network{
		random:  rand.New(rand.NewPCG(seed, 7)),
		weather: w,
		hosts:   make(map[string]*Host),
		streams: make(map[*stream]struct{}),
		held:    make(map[Link]bool),
	}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// SetWeather applies to data sent from now on.
func (n *Network) SetWeather(w Weather) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.weather = w
}

// Hold holds the links, in addition to those that are held already.
func (n *Network) Hold(links ...Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		n.held[l] = false
	}
}

// Cut cuts the links: new connections across them fail, and existing ones that use one of
// them in either direction break.
func (n *Network) Cut(links ...Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		n.held[l] = true
	}
	for s := range n.streams {
		if n.held[s.link] {
			s.conn.breakLocked()
		}
	}
}

// Release releases the links; without arguments all of them, and all stalled connections.
// Late data then arrives soon.
func (n *Network) Release(links ...Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := len(links) == 0
	if all {
		clear(n.held)
	}
	for _, l := range links {
		delete(n.held, l)
	}
	now := time.Now()
	for s := range n.streams {
		if all {
			s.stalled, s.slow = false, 0
			s.hastenLocked(now.Add(n.weather.Delay))
		}
		s.cond.Broadcast()
	}
	n.changed.Broadcast()
}

// Break breaks the connections that have an end at the host.
func (n *Network) Break(host string) {
	n.each(func(s *stream) {
		if s.link.From == host || s.link.To == host {
			s.conn.breakLocked()
		}
	})
}

// BreakSome breaks each connection with a chance of one in few. A request whose answer was
// under way has been carried out, but its sender does not know.
func (n *Network) BreakSome(few int) {
	n.each(func(s *stream) {
		if s.conn.dialed && n.random.IntN(few) == 0 {
			s.conn.breakLocked()
		}
	})
}

// StallSome stalls each direction of each connection with a chance of one in few, until
// Release: its data arrives then, while other connections between the same hosts go on.
func (n *Network) StallSome(few int) {
	n.each(func(s *stream) {
		if n.random.IntN(few) == 0 {
			s.stalled = true
		}
	})
}

// Unstall releases every stalled connection.
func (n *Network) Unstall() {
	n.each(func(s *stream) {
		s.stalled = false
		s.cond.Broadcast()
	})
}

// each calls do with each stream, in the order in which they were opened.
func (n *Network) each(do func(*stream)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range slices.SortedFunc(maps.Keys(n.streams), func(a, b *stream) int { return a.number - b.number }) {
		do(s)
	}
}

// delayLocked draws the delay of a message over s.
func (n *Network) delayLocked(s *stream) time.Duration {
	d := drawn(n.random, n.weather.Delay)
	if n.weather.Late > 0 && n.random.IntN(1000) < n.weather.Late {
		d += drawn(n.random, n.weather.LateMax)
	}
	return d + drawn(n.random, s.slow)
}

// drawn returns a duration below limit.
func drawn(r *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(limit)))
}
