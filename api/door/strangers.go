package door

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A stranger is a connection that has shown no valid key yet or, without keys, has not sent the head of a request.
// Everyone who can reach the port can open many of them. Strangers therefore make room for others: the one is closed
// that has waited longest since it was opened or answered.

const (
	// StrangerTimeout bounds the arrival of a whole request of a stranger. Once it has shown a valid key, its body
	// has ReadTimeout from then on.
	StrangerTimeout = 10 * time.Second
	// StrangerBodyBytes bounds a body that comes without a valid key.
	StrangerBodyBytes = BodyFreeBytes
	// addressBitsIPv6 is the length of the prefix by which IPv6 clients are identified, because a host can choose the
	// rest.
	addressBitsIPv6 = 64
)

// strangers are the strangers among a server's connections. The zero value with perAddress set is ready. It is safe
// for concurrent use.
type strangers struct {
	perAddress int // maximum from one address

	mu      sync.Mutex // guards the fields below, and the places of connections
	waiting list.List  // of *Conn, the one that has waited longest first
	from    map[netip.Addr]*list.List
}

// strangerPlace is a connection's position in strangers; the zero value means none.
type strangerPlace struct {
	address   netip.Addr
	all, same *list.Element // among all, and among those of its address
}

// enter adds a connection that was just opened. If its address has too many, the one of them that has waited longest
// is closed.
func (s *strangers) enter(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		s.from = make(map[netip.Addr]*list.List)
	}
	p := &c.place
	p.address = addressOf(c.RemoteAddr())
	same := s.from[p.address]
	if same == nil {
		same = list.New()
		s.from[p.address] = same
	}
	p.all, p.same = s.waiting.PushBack(c), same.PushBack(c)
	if same.Len() > s.perAddress {
		s.endLocked(same.Front().Value.(*Conn))
	}
}

// answered notes that a stranger's request, one that needs no key, was answered.
func (s *strangers) answered(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := &c.place; p.all != nil {
		s.waiting.MoveToBack(p.all)
		s.from[p.address].MoveToBack(p.same)
	}
}

// leave removes a connection that is no longer a stranger, or is closed. It may be called twice.
func (s *strangers) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(c)
}

func (s *strangers) leaveLocked(c *Conn) {
	p := &c.place
	if p.all == nil {
		return
	}
	s.waiting.Remove(p.all)
	same := s.from[p.address]
	if same.Remove(p.same); same.Len() == 0 {
		delete(s.from, p.address)
	}
	*p = strangerPlace{}
}

// makeRoom closes the stranger that has waited longest, and returns false if there is no stranger.
func (s *strangers) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.waiting.Front()
	if first == nil {
		return false
	}
	s.endLocked(first.Value.(*Conn))
	return true
}

// endLocked closes a stranger. The goroutine that serves it notices.
func (s *strangers) endLocked(c *Conn) {
	s.leaveLocked(c)
	c.port.cfg.StrangerEnded()
	c.countOut()
	// Closes the socket beneath TLS, so as not to wait for the client's close_notify.
	_ = c.socket().Close()
}

func (s *strangers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.Len()
}

// addressOf returns the address that a connection counts for.
func addressOf(remote net.Addr) netip.Addr {
	address := SourceOf(remote)
	if address.Is6() {
		if prefix, err := address.Prefix(addressBitsIPv6); err == nil {
			return prefix.Addr()
		}
	}
	return address
}

// Sampled limits a kind of log line that strangers can cause as often as they like: in each interval the first one is
// logged and the others are counted. The zero value is ready. It is safe for concurrent use.
type Sampled struct {
	mu       sync.Mutex
	loggedAt time.Time
	quiet    int // not logged since
}

// SampledInterval is the least time between two log lines of a kind.
const SampledInterval = time.Second

// MayLog reports whether a line may be logged now, and how many before it were not.
func (s *Sampled) MayLog(now time.Time) (quiet int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.loggedAt) < SampledInterval {
		s.quiet++
		return 0, false
	}
	quiet = s.quiet
	s.loggedAt, s.quiet = now, 0
	return quiet, true
}
