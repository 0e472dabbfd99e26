package hosts

import (
	"container/heap"
	"errors"
	"maps"
	"math/rand"
	"os"
	"sync"
	"time"
)

const (
	// mtu is the length of the longest packet, as on an Ethernet.
	mtu = 1500
	// queuePacketMax bounds the packets in the switch, about 30 MB. More are lost, as in a
	// real one.
	queuePacketMax = 20_000
	// overtakeDelay is the delay of a packet that should be overtaken.
	overtakeDelay = 20 * time.Millisecond
	// limitBurst bounds the bytes that a limited host may send at once: a few packets.
	limitBurst = 8 * mtu
	// limitWait bounds the wait of packets from a limited host; then they are lost.
	limitWait = time.Second
)

// errClosed is returned when the network is closed.
var errClosed = errors.New("the network is closed")

// packetSwitch moves packets between hosts, and delays or loses them by its seed.
type packetSwitch struct {
	cables []*os.File // by the number of the host
	wg     sync.WaitGroup
	wake   chan struct{} // has a token when the queue has a new first packet
	stop   chan struct{} // closed by close

	mu     sync.Mutex // guards the fields below
	closed bool
	asked  map[int]map[Link]Quality
	next   int              // number of the next request
	links  map[Link]Quality // all requests combined
	rng    *rand.Rand
	queue  packets
	count  int64              // packets so far, to keep the order of equals
	last   map[Link]time.Time // arrival of the link's last packet
	sent   map[int]time.Time  // when a host with a limit will have sent everything
}

// startSwitch starts a switch between the hosts of the cables.
func startSwitch(cables []*os.File, seed int64) *packetSwitch {
	s := &packetSwitch{
		cables: cables, wake: make(chan struct{}, 1), stop: make(chan struct{}), asked: map[int]map[Link]Quality{},
		rng: rand.New(rand.NewSource(seed)), last: map[Link]time.Time{}, sent: map[int]time.Time{},
	}
	for number := range cables {
		s.wg.Go(func() { s.receive(number) })
	}
	s.wg.Go(s.deliver)
	return s
}

// add changes links, in addition to earlier requests, for packets from now on.
func (s *packetSwitch) add(links map[Link]Quality) (remove func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	number := s.next
	s.next++
	s.asked[number] = maps.Clone(links)
	s.combineLocked()
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, number)
		s.combineLocked()
		return nil
	}, nil
}

// combineLocked combines the requests for each link.
func (s *packetSwitch) combineLocked() {
	s.links = map[Link]Quality{}
	for _, links := range s.asked {
		for link, q := range links {
			s.links[link] = s.links[link].with(q)
		}
	}
}

// receive queues the packets of the host until its cable is closed.
func (s *packetSwitch) receive(from int) {
	buf := make([]byte, mtu+64)
	for {
		n, err := s.cables[from].Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil || n < 20 || buf[0]>>4 != 4 {
			continue // not IPv4
		}
		if to, ok := s.hostOf(buf[16:20]); ok {
			s.take(Link{from, to}, buf[:n])
		}
	}
}

// hostOf returns the host with that address.
func (s *packetSwitch) hostOf(addr []byte) (number int, ok bool) {
	if addr[0] != 10 || addr[1] != 99 || addr[2] != 0 {
		return 0, false
	}
	number = int(addr[3])
	if number == clientsAddr {
		return Clients, true
	}
	return number, number >= 1 && number < len(s.cables)
}

// take decides when the packet arrives, and how often.
func (s *packetSwitch) take(link Link, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.links[link]
	// Every packet draws the same number of values, whatever happens to it.
	lost, twice, overtaken, jitter := s.rng.Float64(), s.rng.Float64(), s.rng.Float64(), s.rng.Float64()
	sent, ok := s.sentLocked(link.From, len(data))
	if q.Cut || lost < q.Loss || !ok {
		return
	}
	at := sent.Add(q.Delay + time.Duration(jitter*float64(q.Jitter)))
	if at.Before(s.last[link]) {
		at = s.last[link]
	}
	if overtaken < q.Reorder {
		at = at.Add(overtakeDelay)
	} else {
		s.last[link] = at
	}
	packet := packet{at: at, to: link.To, data: append([]byte(nil), data...)}
	s.pushLocked(packet)
	if twice < q.Duplicate {
		s.pushLocked(packet)
	}
}

// sentLocked returns the time when the host will have sent size more bytes; not ok: they are
// lost.
func (s *packetSwitch) sentLocked(from, size int) (at time.Time, ok bool) {
	now := time.Now()
	limit := s.links[Link{from, Everybody}].Limit
	if limit == 0 {
		return now, true
	}
	takes := func(bytes int) time.Duration {
		return time.Duration(float64(bytes) / float64(limit) * float64(time.Second))
	}
	if idle := now.Add(-takes(limitBurst)); s.sent[from].Before(idle) {
		s.sent[from] = idle
	}
	if at = s.sent[from].Add(takes(size)); at.After(now.Add(limitWait)) {
		return at, false
	}
	s.sent[from] = at
	if at.Before(now) {
		at = now
	}
	return at, true
}

func (s *packetSwitch) pushLocked(p packet) {
	if len(s.queue) >= queuePacketMax {
		return
	}
	s.count++
	p.seq = s.count
	heap.Push(&s.queue, p)
	if s.queue[0].seq == p.seq {
		select {
		case s.wake <- struct{}{}:
		default: // it checks anyway
		}
	}
}

// deliver delivers packets when they are due.
func (s *packetSwitch) deliver() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait, due := s.first()
		if due {
			_, _ = s.cables[p.to].Write(p.data) // a full device loses it
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// first takes the first packet if it is due; otherwise it returns the time to wait.
func (s *packetSwitch) first() (p packet, wait time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return packet{}, time.Hour, false
	}
	if wait := time.Until(s.queue[0].at); wait > 0 {
		return packet{}, wait, false
	}
	return heap.Pop(&s.queue).(packet), 0, true
}

// close ends the switch and waits for its end.
func (s *packetSwitch) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	var errs []error
	for _, cable := range s.cables {
		errs = append(errs, cable.Close())
	}
	s.wg.Wait()
	return errors.Join(errs...)
}

// packet is an IPv4 packet under way.
type packet struct {
	at   time.Time // arrival
	seq  int64     // order of those that arrive at the same time
	to   int       // number of the host
	data []byte
}

// packets is a heap, ordered by arrival.
type packets []packet

func (q packets) Len() int { return len(q) }
func (q packets) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].seq < q[j].seq
	}
	return q[i].at.Before(q[j].at)
}
func (q packets) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *packets) Push(x any)   { *q = append(*q, x.(packet)) }
func (q *packets) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = packet{}
	*q = old[:len(old)-1]
	return last
}
