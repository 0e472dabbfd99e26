package hosts

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// switchDevice is the name of each host's cable to the switch.
	switchDevice = "sw0"
	// queuePacketMax bounds the packets that the switch keeps, about 30 MB. What
	// comes on top is lost, as in a real one.
	queuePacketMax = 20_000
	// overtakeDelay is how much later a packet comes that is to be overtaken.
	overtakeDelay = 20 * time.Millisecond
)

// packetSwitch moves packets between hosts and is late with them, by its seed.
// The hosts send to it, and get from it, through one TUN device each.
type packetSwitch struct {
	tuns []*os.File // by the number of the host
	wg   sync.WaitGroup
	wake chan struct{} // has a token when the queue has a new first packet
	stop chan struct{} // closed by close

	mu    sync.Mutex // guards what follows
	links map[Link]Quality
	rng   *rand.Rand
	queue packets
	count int64              // packets so far, to keep the order of equals
	last  map[Link]time.Time // when the last packet of the link is due
}

// openTun makes a TUN device in the namespace of the calling thread.
func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, errors.Join(fmt.Errorf("make a TUN device: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// startSwitch starts a switch between the hosts that the devices belong to.
func startSwitch(tuns []*os.File, seed int64) *packetSwitch {
	s := &packetSwitch{
		tuns: tuns, wake: make(chan struct{}, 1), stop: make(chan struct{}),
		rng: rand.New(rand.NewSource(seed)), last: map[Link]time.Time{},
	}
	s.wg.Add(len(tuns) + 1)
	for number := range tuns {
		go s.receive(number)
	}
	go s.deliver()
	return s
}

// set says what is done to packets that come from now on.
func (s *packetSwitch) set(links map[Link]Quality) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = links
}

// receive queues what the host sends, until its device is closed.
func (s *packetSwitch) receive(from int) {
	defer s.wg.Done()
	buf := make([]byte, mtu+64)
	for {
		n, err := s.tuns[from].Read(buf)
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

// hostOf returns which host has the address.
func (s *packetSwitch) hostOf(addr []byte) (number int, ok bool) {
	if addr[0] != 10 || addr[1] != 99 || addr[2] != 0 {
		return 0, false
	}
	number = int(addr[3])
	if number == clientsAddr {
		return Clients, true
	}
	return number, number >= 1 && number < len(s.tuns)
}

// take decides when the packet arrives, and how often.
func (s *packetSwitch) take(link Link, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.links[link]
	// Drawn in the same number for every packet, whatever comes of it.
	lost, twice, overtaken, jitter := s.rng.Float64(), s.rng.Float64(), s.rng.Float64(), s.rng.Float64()
	if q.Cut || lost < q.Loss {
		return
	}
	at := time.Now().Add(q.Delay + time.Duration(jitter*float64(q.Jitter)))
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
		default: // it looks anyway
		}
	}
}

// deliver hands packets out when they are due.
func (s *packetSwitch) deliver() {
	defer s.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait, due := s.next()
		if due {
			_, _ = s.tuns[p.to].Write(p.data) // a device that is full loses it
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

// next takes the first packet if it is due, and else says how long to wait.
func (s *packetSwitch) next() (p packet, wait time.Duration, due bool) {
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
	close(s.stop)
	err := closeAll(s.tuns)
	s.wg.Wait()
	return err
}

// packet is an IPv4 packet on its way.
type packet struct {
	at   time.Time // when it arrives
	seq  int64     // order of those that arrive at the same time
	to   int       // number of the host
	data []byte
}

// packets is a heap, the first to arrive first.
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
