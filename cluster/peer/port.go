package peer

import (
	"bufio"
	"cmp"
	"container/list"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/nodekey"
)

// Bounds of the peer port.
const (
	// handshakeTimeoutDefault bounds connecting and the handshake together.
	handshakeTimeoutDefault = 5 * time.Second
	// handshakesMax bounds the inbound handshakes under way. One more closes the oldest of
	// the address with the most of them, which is more likely a stranger that says nothing
	// or floods the port than a node, which needs only a few round trips.
	handshakesMax = 1024
	// inboundConnsMax bounds the inbound connections: seven peers with connsPerPeerMax
	// each, and Raft's.
	inboundConnsMax = 4096
	// ConnsMax is the default for all connections, including those that this node opens,
	// connsPerPeerMax of them to the leader.
	ConnsMax = 5 * inboundConnsMax / 4
	// meetsMax bounds the connections for joining, which need no membership. One more
	// closes the oldest.
	meetsMax = 64
	// streamsEndTimeout bounds the time that Close waits for answers to waiting requests,
	// in both directions. The caller of Close has ended their waits before.
	streamsEndTimeout = time.Second
	// acceptPauseMax bounds the pause after a failed accept, for instance when the process
	// has run out of files.
	acceptPauseMax = time.Second
)

// ErrAddrInUse is returned when another process listens on the address of the peer port.
var ErrAddrInUse = errors.New("the peer address is in use")

// Config says how the peer port listens, dials and decides.
type Config struct {
	// ListenAddr is the host:port to listen on; port 0 picks a free one.
	ListenAddr string
	// Advertise is the host:port at which others reach the port; "" = the address that it
	// listens on.
	Advertise string
	// JoinKeys returns the secrets with which both sides of a connection show that they
	// belong together; nil = none. The caller decides whether that is allowed.
	JoinKeys func() JoinKeys
	// Self returns this node's hello. It is called for each handshake, because the cluster
	// id is known late. The port sets PeerAddr and Key.
	Self func() Hello
	// Signer is the node's own key, from which the UUID of Self is derived.
	Signer ed25519.PrivateKey
	// Admit is called at the end of each inbound handshake, after the key, cluster and
	// target were checked and before Member and RaftPeer. It may wait until these can
	// decide, or ctx ends. Its error refuses the connection, and its text is sent to the
	// dialer. nil admits all.
	Admit func(ctx context.Context, purpose Purpose, from Hello) error
	// Member reports whether the dialer is a member of the cluster. API requests, whose
	// keys the forwarding node has checked, and all calls except the open ones are accepted
	// only from members. It is called for each request, because a connection outlives a
	// membership. nil = all are.
	Member func(Hello) bool
	// RaftPeer returns an error if Raft messages from a node are not accepted. It is called
	// when that node opens a connection, and then repeatedly. host is the host that it
	// dialed from. nil = all are accepted.
	RaftPeer func(ctx context.Context, from Hello, host string) error
	// Superseded returns an error if Raft messages must not pass between this node and a
	// process that shows another one's identity. It is called during the handshake, in
	// either direction, and by Recheck. It must not wait. nil = all pass.
	Superseded func(Hello) error
	// Recorded returns the name and peer address under which the cluster has recorded the
	// node with an identity, or "". nil = nothing is recorded.
	Recorded func(uuid string) (nodeID, peerAddr string)
	// TargetUUID returns the UUID of the member at a peer address, or "". A connection then
	// reaches that very node or none, so that no other process at a member's address is
	// taken for it. It is called without locks of the port held.
	TargetUUID func(addr string) string
	// Missed is called with a dialer that has proven its identity but wanted a node of
	// another identity, which was at this address before. May be nil.
	Missed func(Hello)
	// Logger gets one line per event that matters to an operator.
	Logger hclog.Logger
	// Listen listens on an address; nil = TCP.
	Listen func(addr string) (net.Listener, error)
	// Dial opens a connection; nil = TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Certificate enables mutual TLS; nil = none. TLSMode says on which connections.
	Certificate Certificate
	TLSMode     TLSMode
	// HandshakeTimeout bounds connecting and the handshake; 0 = 5 s.
	HandshakeTimeout time.Duration
	// Connections bounds the connections in both directions; others may open four fifths.
	// Raft's are never refused. 0 = ConnsMax.
	Connections int
}

// Port is the one port for all communication between nodes: Raft, forwarded requests and
// calls. Its methods are safe for concurrent use.
type Port struct {
	cfg      Config
	log      hclog.Logger
	listener net.Listener
	addr     string           // advertised
	server   *fasthttp.Server // for members
	meets    *fasthttp.Server // for nodes that want to join
	failures RefusalLog

	ctx    context.Context // ends with the port
	cancel context.CancelFunc
	wg     sync.WaitGroup // all goroutines of the port; Add under mu only

	whereabouts Whereabouts

	handshakes chan struct{} // one slot each, handshakesMax
	raftConns  chan *peerConn

	forward atomic.Pointer[fasthttp.RequestHandler]
	streams atomic.Int64   // inbound streams under way, at most streamsMax
	waits   sync.WaitGroup // streams in both directions; Add under mu only
	readers sync.Pool      // of *bufio.Reader, forwardHeaderMax each
	// contexts are *fasthttp.RequestCtx of answered requests, messages *[]byte of sent ones.
	contexts, messages sync.Pool

	looking sync.Mutex // held while connections are checked for coverage

	mu      sync.Mutex
	closed  bool
	pending list.List              // of pendingHandshake, oldest first
	dialers map[string]int         // number of handshakes under way by address
	meeting list.List              // of *peerConn: inbound connections of PurposeMeet, oldest first
	conns   map[*peerConn]struct{} // inbound and outbound
	inbound int                    // number of inbound connections
	calls   map[string]CallHandler
	pools   map[string]*connPool // by peer address
	clients map[streamTarget]*streamClient
}

// Listen opens the peer port. It accepts at once, so handlers should be set before others
// learn the address; until then requests get 503 and calls an error. The caller must Close
// it. ErrAddrInUse if the address is taken.
func Listen(cfg Config) (*Port, error) {
	if cfg.HandshakeTimeout <= 0 {
		cfg.HandshakeTimeout = handshakeTimeoutDefault
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Connections <= 0 {
		cfg.Connections = ConnsMax
	}
	if cfg.Listen == nil {
		cfg.Listen = listenTCP
	}
	listener, err := cfg.Listen(cfg.ListenAddr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another process listens on %s: stop it, or choose another address with --peer-addr: %w", ErrAddrInUse, cfg.ListenAddr, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on --peer-addr %s: %w", cfg.ListenAddr, err)
	}
	addr, err := advertised(listener.Addr(), cfg.Advertise)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Port{
		cfg: cfg, log: cfg.Logger, listener: listener, addr: addr,
		ctx: ctx, cancel: cancel,
		handshakes: make(chan struct{}, handshakesMax),
		raftConns:  make(chan *peerConn),
		dialers:    make(map[string]int),
		conns:      make(map[*peerConn]struct{}),
		calls:      make(map[string]CallHandler),
		pools:      make(map[string]*connPool),
		clients:    make(map[streamTarget]*streamClient),
	}
	p.readers.New = func() any { return bufio.NewReaderSize(nil, forwardHeaderMax) }
	p.contexts.New = func() any { return new(fasthttp.RequestCtx) }
	p.messages.New = func() any { return new([]byte) }
	p.server, p.meets = newServer(p), newMeetServer(p)
	p.start(p.runAccept)
	p.start(p.runIdleReaper)
	if cfg.Certificate != nil {
		p.start(p.runUncovered)
	}
	return p, nil
}

func listenTCP(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// advertised returns the address at which others reach the listener.
func advertised(listening net.Addr, advertise string) (string, error) {
	if advertise != "" {
		if _, port, err := net.SplitHostPort(advertise); err != nil || port == "" || port == "0" {
			return "", fmt.Errorf("--peer-advertise %q is not HOST:PORT", advertise)
		}
		return advertise, nil
	}
	if tcp, ok := listening.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "", fmt.Errorf("--peer-addr %s listens on every address: say with --peer-advertise HOST:PORT by which one other nodes reach it", listening)
	}
	return listening.String(), nil
}

// Addr returns the advertised host:port of the peer port.
func (p *Port) Addr() string { return p.addr }

// Whereabouts returns the addresses that the other members have reported.
func (p *Port) Whereabouts() *Whereabouts { return &p.whereabouts }

// Close closes the listener and every connection, including Raft's, and waits for the
// port's goroutines and the handlers that they run. It may be called more than once; each
// call returns when everything has ended.
func (p *Port) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	conns := make([]*peerConn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()

	var err error
	if first {
		defer p.endStreams()()
		p.cancel()
		err = p.listener.Close()
		for _, c := range conns {
			_ = c.Close()
		}
	}
	p.wg.Wait()
	return err
}

// endStreams gives waiting requests a moment to be answered. The returned function waits
// until all have ended.
func (p *Port) endStreams() (wait func()) {
	ended := make(chan struct{})
	go func() {
		p.waits.Wait()
		close(ended)
	}()
	timer := time.NewTimer(streamsEndTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	return func() { <-ended }
}

// enterStream counts a stream, which p.waits.Done ends. It returns false once Close has
// begun.
func (p *Port) enterStream() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.waits.Add(1)
	return true
}

// start runs fn in a goroutine that Close waits for. It returns false once Close has begun.
func (p *Port) start(fn func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(fn)
	return true
}

// track adds conn to the port. It closes conn and returns nil once Close has begun, or if
// there are too many inbound connections.
func (p *Port) track(conn net.Conn, inbound bool) *peerConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || (inbound && p.inbound >= p.inboundMax()) {
		_ = conn.Close()
		return nil
	}
	c := &peerConn{Conn: conn, port: p, inbound: inbound}
	p.conns[c] = struct{}{}
	if inbound {
		p.inbound++
	}
	return c
}

// inboundMax returns the maximum number of inbound connections: four fifths of all.
func (p *Port) inboundMax() int { return p.cfg.Connections * 4 / 5 }

// outboundFull reports whether this node has reached its maximum of opened connections.
func (p *Port) outboundFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)-p.inbound >= p.cfg.Connections-p.inboundMax()
}

// forget undoes track.
func (p *Port) forget(c *peerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.conns[c]; !ok {
		return
	}
	delete(p.conns, c)
	if c.inbound {
		p.inbound--
	}
}

// runAccept accepts connections until the listener is closed. Each needs a handshake slot;
// if none is free, an older handshake has to end.
func (p *Port) runAccept() {
	pause := time.Millisecond
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.log.Error("accept on the peer port", "error", err)
			p.cutOldest() // to free a descriptor
			select {
			case <-time.After(pause):
			case <-p.ctx.Done():
				return
			}
			pause = min(2*pause, acceptPauseMax)
			continue
		}
		pause = time.Millisecond
		end, ok := p.beginHandshake(conn)
		if !ok || !p.start(func() { p.serve(conn, end) }) {
			_ = conn.Close()
			return
		}
	}
}

// hostOf returns where conn was dialed from.
func hostOf(conn net.Conn) string {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	return host
}

// pendingHandshake is an inbound handshake under way.
type pendingHandshake struct {
	from string
	conn net.Conn
}

// beginHandshake counts a handshake on conn, and closes another one if there are too many.
// end must follow; ok is false once the port closes.
func (p *Port) beginHandshake(conn net.Conn) (end func(), ok bool) {
	select {
	case p.handshakes <- struct{}{}:
	default:
		p.cutOldest()
		select {
		case p.handshakes <- struct{}{}:
		case <-p.ctx.Done():
			return nil, false
		}
	}
	from := hostOf(conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	place := p.pending.PushBack(pendingHandshake{from, conn})
	p.dialers[from]++
	return func() {
		p.mu.Lock()
		p.endHandshakeLocked(place)
		p.mu.Unlock()
		<-p.handshakes
	}, true
}

// endHandshakeLocked removes a handshake from those under way, unless cutOldest has closed it.
func (p *Port) endHandshakeLocked(place *list.Element) {
	from := place.Value.(pendingHandshake).from
	before := p.pending.Len()
	p.pending.Remove(place)
	if p.pending.Len() == before {
		return
	}
	if p.dialers[from]--; p.dialers[from] == 0 {
		delete(p.dialers, from)
	}
}

// cutOldest closes the oldest handshake under way of the address with the most of them, so
// that a flood affects only its own source. The goroutine of that handshake notices and
// frees its slot.
func (p *Port) cutOldest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := 0
	for _, count := range p.dialers {
		most = max(most, count)
	}
	for place := p.pending.Front(); place != nil; place = place.Next() {
		if s := place.Value.(pendingHandshake); p.dialers[s.from] == most {
			_ = s.conn.Close()
			p.endHandshakeLocked(place)
			return
		}
	}
}

// serve performs the handshake on conn and hands it on. It calls end as soon as the
// handshake is over.
func (p *Port) serve(conn net.Conn, end func()) {
	c, err := p.greet(conn)
	end()
	if err != nil {
		p.failures.Warn(p.log, "refused a connection to the peer port", "remote_addr", conn.RemoteAddr(), "error", err)
		return
	}
	if c == nil {
		return
	}
	switch c.purpose {
	case PurposeRaft:
		p.deliverRaft(c)
		return
	case PurposeStream:
		p.serveStreams(c)
		return
	case PurposeMeet:
		p.serveMeet(c)
		return
	}
	// The server closes the connection; the reason does not matter.
	_ = p.server.ServeConn(c)
	_ = c.Close()
}

// greet performs the acceptor's handshake. It returns nil without an error if the port is
// closing or full.
func (p *Port) greet(conn net.Conn) (*peerConn, error) {
	c := p.track(p.secure(conn, false, ""), true)
	if c == nil {
		return nil, nil
	}
	if err := c.SetDeadline(time.Now().Add(p.cfg.HandshakeTimeout)); err != nil {
		_ = c.Close()
		return nil, err
	}
	var other Hello
	h, err := p.newHandshake(c)
	if err == nil {
		h.admit = p.admitOn(c)
		_, other, err = h.accept(c)
	}
	if err == nil {
		p.met(other)
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		var r *refusal
		if errors.As(err, &r) && r.missed && other.ClusterID != "" && p.cfg.Missed != nil {
			p.cfg.Missed(other)
		}
		p.lingerClose(c)
		return nil, err
	}
	c.proven()
	c.noteShown()
	return c, nil
}

// lingerClose closes a refused connection so that the dialer can read the reason: closing
// with unread bytes would send a reset and discard the answer. Reading is bounded in
// bytes and by the handshake's deadline.
func (p *Port) lingerClose(c *peerConn) {
	defer c.Close()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, rawOf(c.Conn), 2*helloBytesMax)
}

// self returns this node's hello.
func (p *Port) self() Hello {
	self := p.cfg.Self()
	self.PeerAddr = p.addr
	self.Key = nodekey.Encode(nodekey.Public(p.cfg.Signer))
	return self
}

// newHandshake performs the TLS handshake on c, if the port uses TLS, and returns the
// handshake to perform inside it.
func (p *Port) newHandshake(c *peerConn) (h handshake, err error) {
	if err := negotiateTLS(c); err != nil {
		return h, err
	}
	h = handshake{self: p.self(), signer: p.cfg.Signer}
	if p.cfg.JoinKeys != nil {
		h.keys = p.cfg.JoinKeys()
	}
	h.channel, err = channelOf(c.Conn)
	return h, err
}

// admitOn returns the decision at the end of a handshake on c.
func (p *Port) admitOn(c *peerConn) func(Purpose, Hello) error {
	return func(purpose Purpose, from Hello) error {
		ctx, cancel := context.WithTimeout(p.ctx, p.cfg.HandshakeTimeout)
		defer cancel()
		if p.cfg.Admit != nil {
			if err := p.cfg.Admit(ctx, purpose, from); err != nil {
				return err
			}
		}
		if err := p.checkCertificate(c, from); err != nil {
			return err
		}
		if err := p.mayOpen(ctx, purpose, from, hostOf(c)); err != nil {
			return err
		}
		return p.know(c, purpose, from)
	}
}

// know sets the purpose and the other side of c. It returns an error if Raft messages must
// not pass between the two. It sets them first, so that a Recheck that follows finds c.
func (p *Port) know(c *peerConn, purpose Purpose, other Hello) error {
	p.mu.Lock()
	c.purpose, c.other = purpose, other
	p.mu.Unlock()
	if purpose != PurposeRaft {
		return nil
	}
	return p.superseded(other)
}

func (p *Port) superseded(other Hello) error {
	if p.cfg.Superseded == nil {
		return nil
	}
	return p.cfg.Superseded(other)
}

// Recheck closes Raft's connections with superseded processes of the node.
func (p *Port) Recheck(uuid string) {
	p.mu.Lock()
	var over []*peerConn
	for c := range p.conns {
		if c.purpose == PurposeRaft && c.other.UUID == uuid && p.superseded(c.other) != nil {
			over = append(over, c)
		}
	}
	p.mu.Unlock()
	for _, c := range over {
		_ = c.Close()
	}
}

// checkCertificate checks that the dialer's certificate, if the port wants one, is for the
// node that it has proven to be.
func (p *Port) checkCertificate(c *peerConn, from Hello) error {
	secured := tlsOf(c.Conn)
	if secured == nil {
		return nil
	}
	nodeID, peerAddr := "", ""
	if p.cfg.Recorded != nil {
		nodeID, peerAddr = p.cfg.Recorded(from.UUID)
	}
	return secured.checkName(cmp.Or(nodeID, from.NodeID), cmp.Or(peerAddr, from.PeerAddr))
}

// mayOpen returns an error if the node may not open a connection of that purpose from the
// host.
func (p *Port) mayOpen(ctx context.Context, purpose Purpose, from Hello, host string) error {
	switch {
	case purpose == PurposeMeet:
		return nil
	case purpose == PurposeRaft && p.cfg.RaftPeer == nil:
		return nil
	case purpose == PurposeRaft:
		return p.cfg.RaftPeer(ctx, from, host)
	case !p.isMember(from):
		return NotMember(from)
	}
	return nil
}

func (p *Port) isMember(from Hello) bool { return p.cfg.Member == nil || p.cfg.Member(from) }

// NotMember returns the error for a node that is not a member of the cluster.
func NotMember(from Hello) error {
	return fmt.Errorf("node %q with identity %s is not a member of the cluster", from.NodeID, from.UUID)
}

// met records the address that a node has given in its handshake.
func (p *Port) met(other Hello) {
	if p.isMember(other) && p.superseded(other) == nil {
		p.whereabouts.met(other.UUID, other.PeerAddr)
	}
}

// dial opens a connection to the peer at addr. want is the UUID that it must have, "" for
// any, which only PurposeMeet allows. ctx and the handshake timeout bound it.
func (p *Port) dial(ctx context.Context, addr string, purpose Purpose, want string) (*peerConn, error) {
	if want == "" && purpose != PurposeMeet {
		return nil, fmt.Errorf("dial peer %s: no member is known to be there", addr)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.HandshakeTimeout)
	defer cancel()
	stopOnClose := context.AfterFunc(p.ctx, cancel)
	defer stopOnClose()

	if purpose != PurposeRaft && p.outboundFull() {
		return nil, fmt.Errorf("dial peer %s: this node has %d connections to others open, its limit", addr, p.cfg.Connections-p.inboundMax())
	}
	conn, err := p.dialTCP(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial peer %s: %w", addr, err)
	}
	deadline, _ := ctx.Deadline()
	c := p.track(p.secure(conn, true, addr), false)
	if c == nil {
		return nil, fmt.Errorf("dial peer %s: %w", addr, net.ErrClosed)
	}
	// A context that ends early ends the handshake early.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(aLongTimeAgo()) })
	var h handshake
	var other Hello
	err = c.SetDeadline(deadline)
	if err == nil {
		h, err = p.newHandshake(c)
	}
	if err == nil {
		other, err = h.dial(c, purpose, want)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = p.know(c, purpose, other)
	}
	if err == nil {
		p.met(other)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("dial peer %s: %w", addr, err)
	}
	c.noteShown()
	return c, nil
}

func (p *Port) dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	if p.cfg.Dial != nil {
		return p.cfg.Dial(ctx, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
