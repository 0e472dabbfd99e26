package fuzz

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// readersPart of the foes have a key and request long lists. They must be fewer than
	// the connections that a node accepts, because callers with a key are no strangers.
	readersPart = 4
	// listParams is the size of each of listTasks tasks, which makes a list as long as
	// possible.
	listParams = 1_000_000
	listTasks  = 9
	// trickle is the interval at which slow readers and senders read or send a byte.
	trickle = 50 * time.Millisecond
	// smallWindow is the receive buffer of a foe that does not read.
	smallWindow = 4096
	// foeHosts is the number of addresses in 127.0.0.0/8 that foes use, so that the bound
	// per address does not keep them out.
	foeHosts = 200
)

// Siege is the result of many concurrent connections that do little or nothing, while a
// guest has to be answered.
type Siege struct {
	Name       string
	Foes       int           // opened connections
	Calls      int           // answered calls of the guest
	Cut        int           // its connections that were closed before it had shown its key
	Slowest    time.Duration // of those calls
	ResidentMB float64       // the most that a node's process used
}

// siege is a kind of siege.
type siege struct {
	name string
	foes int
	peer bool // at the peer port
	// lay does what the i-th foe does on its connection, until that is closed or ctx ends.
	lay func(ctx context.Context, c net.Conn, i int)
}

// sieges returns all kinds that are possible in this run.
func (r *run) sieges() []siege {
	key := "X-API-Key: " + r.cfg.FoeKey + "\r\n"
	list := "GET /api/tasks?task_type=" + listType + "&include=params HTTP/1.1\r\nHost: x\r\n" + key + "\r\n"
	all := []siege{
		{name: "readers that read nothing", foes: r.cfg.Foes / readersPart, lay: says(list, false)},
		{name: "readers of a byte now and then", foes: r.cfg.Foes / readersPart, lay: says(list, true)},
		{name: "connections that say nothing", foes: r.cfg.Foes, lay: says("", false)},
		{name: "heads that do not end", foes: r.cfg.Foes, lay: says("GET /api/stats HTTP/1.1\r\nHost: x\r\nX-", true)},
		{name: "handshakes that do not end", foes: r.cfg.Foes, peer: true, lay: r.hangUp},
		{name: "forged members", foes: r.cfg.Foes, peer: true, lay: r.forge},
	}
	if r.cfg.Key == "" {
		return all // without keys, a caller that has sent a head is no stranger
	}
	return append(all,
		siege{name: "bodies that do not end", foes: r.cfg.Foes, lay: says("POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n{", true)},
		siege{name: "large bodies without a key", foes: r.cfg.Foes, lay: says("POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n{", true)},
	)
}

// besiege lays one siege after the other to the first node, and checks what the guest saw
// during each.
func (r *run) besiege(ctx context.Context) error {
	g := newGuest(r)
	if err := g.fill(ctx); err != nil {
		return fmt.Errorf("make tasks to list: %w", err)
	}
	for _, s := range r.sieges() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.report.Sieges = append(r.report.Sieges, r.lay(ctx, g, s))
		r.checkRunning()
	}
	return nil
}

// lay opens a siege's connections and keeps them for the configured time, while the guest
// makes calls.
func (r *run) lay(ctx context.Context, g *guest, s siege) Siege {
	during, end := context.WithCancel(ctx)
	defer end()
	var foes sync.WaitGroup
	opened := make(chan bool, s.foes)
	for i := range s.foes {
		foes.Go(func() {
			c, err := r.dialFoe(during, s.peer, i)
			opened <- err == nil
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			stop := context.AfterFunc(during, func() { _ = c.Close() })
			defer stop()
			s.lay(during, c, i)
		})
	}
	g.begin(s.name)
	for coming := s.foes; coming > 0; {
		select {
		case ok := <-opened:
			coming--
			if ok {
				g.seen.Foes++
			}
		default:
			g.ask(during)
		}
	}
	for until := time.Now().Add(r.cfg.Hold); time.Now().Before(until) && ctx.Err() == nil; {
		g.ask(during)
	}
	end()
	foes.Wait()
	return g.seen
}

// dialFoe opens a foe's connection to the first node, from a separate address.
func (r *run) dialFoe(ctx context.Context, peer bool, i int) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%foeHosts))} //nolint:gosec // below 256
	d := net.Dialer{LocalAddr: from, Timeout: answerTimeout}
	to := r.cfg.Nodes[0].HTTPAddr
	if peer {
		to = r.cfg.Nodes[0].PeerAddr
	}
	c, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(smallWindow)
	}
	if peer || r.cfg.TLS == nil {
		return c, nil
	}
	return overTLS(c, r.cfg.TLS), nil
}

// says returns a foe that sends text and then reads nothing or, if it trickles, a byte now
// and then while it sends more of an incomplete request. With nothing to send, every second
// one still shakes hands if the port has TLS.
func says(text string, trickles bool) func(ctx context.Context, c net.Conn, i int) {
	return func(ctx context.Context, c net.Conn, i int) {
		if text == "" {
			if over, ok := c.(*tls.Conn); ok && i%2 == 0 {
				_ = over.HandshakeContext(ctx)
			}
			<-ctx.Done()
			return
		}
		if _, err := c.Write([]byte(text)); err != nil {
			return
		}
		for trickles {
			select {
			case <-ctx.Done():
				return
			case <-time.After(trickle):
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, _ = c.Read(make([]byte, 1))
			if strings.HasSuffix(text, "\r\n\r\n") {
				continue
			}
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
		}
		<-ctx.Done()
	}
}

// foeOf returns the i-th foe of a siege.
func (r *run) foeOf(i int) *foe {
	rng := rand.New(rand.NewSource(r.cfg.Seed*1_000_003 - int64(i)))
	return &foe{rng: rng, members: r.cfg.Nodes, joinKey: r.cfg.JoinKey, addr: r.cfg.Nodes[0].PeerAddr}
}

// hangUp begins a handshake, as a member or an unknown node, and goes no further.
func (r *run) hangUp(ctx context.Context, c net.Conn, i int) {
	f := r.foeOf(i)
	hello := f.hello(f.purpose(), f.disguise())
	if _, err := c.Write(hello[:f.rng.Intn(len(hello)+1)]); err == nil {
		<-ctx.Done()
	}
}

// forge shakes hands as a member that it is not, again and again.
func (r *run) forge(ctx context.Context, c net.Conn, i int) {
	f := r.foeOf(i)
	for {
		g := f.disguise()
		for !g.forged {
			g = f.disguise()
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(answerTimeout))
		if wrong := forgery(f.shake(c, f.purpose(), g, io.Discard)); wrong != "" {
			r.violate(rulePeer, "peer port of node 1: %s", wrong)
		}
		stop()
		_ = c.Close()
		select {
		case <-ctx.Done():
			return
		case <-time.After(trickle):
		}
		var err error
		if c, err = r.dialFoe(ctx, true, i); err != nil {
			return
		}
	}
}
