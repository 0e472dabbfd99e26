package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/bytesize"
)

// The peer port with mutual TLS: all that nodes send each other, beginning with the
// handshake of handshake.go, is sent inside TLS 1.3. Each side checks the other:
//
//   - Both certificates must be signed by one of the authorities that the other
//     side was given.
//   - The dialer requires the host that it dials among the names of the acceptor's
//     certificate.
//   - The acceptor requires the dialer's node id, or the host of its peer address,
//     among the names of the dialer's certificate. For a member both come
//     from the cluster's record, otherwise from its hello.
//
// The proofs of the handshake inside are bound to this TLS channel.
//
// The first byte of a connection tells TLS (22) from a node without TLS ('C'), so that each
// side can tell the other what is missing, and so that a port can accept both while TLS is
// switched on or off (TLSMode). If something is wrong with a dialer's certificate, the
// acceptor explains it in a refusal within TLS, because TLS itself would only have a number
// for it.
//
// There are no session tickets: each new connection is checked in full with the current
// certificates, and open ones are checked when the authorities change (uncovered.go).

// Certificate returns this node's certificate, with Leaf, and the authorities that it
// accepts on other nodes' certificates. It is called for each connection, concurrently; the
// result is not changed.
type Certificate func() (tls.Certificate, *x509.CertPool)

// TLSMode says which connections of the peer port use TLS, on a node with a Certificate.
// Nodes accept each other if their modes are neighbours; a node without a Certificate is a
// neighbour of TLSAccept. So TLS can be enabled or disabled by stepping through the modes
// on all nodes.
type TLSMode uint8

const (
	// TLSRequired means all connections. Only this mode keeps others out.
	TLSRequired TLSMode = iota
	// TLSPrefer means the connections that the node opens; inbound ones may or may not use
	// TLS. There is no fallback, so an attacker between the nodes cannot force an outbound
	// connection without TLS.
	TLSPrefer
	// TLSAccept means that outbound connections do not use TLS; inbound ones may.
	TLSAccept
)

// firstByteTLS is the first byte of a TLS connection: the type of a handshake record.
const firstByteTLS = 0x16

// tlsConn is a connection with TLS, in either direction. The TLS handshake happens in
// negotiate.
type tlsConn struct {
	*tls.Conn
	raw         net.Conn
	dialed      bool
	authorities *x509.CertPool
	// early is the connection below an acceptor's TLS. either: the other side may do
	// without TLS; plain says, after negotiate, that it does.
	early         *earlyConn
	either, plain bool
	own           []byte // the certificate shown, if dialed
}

// earlyBytesMax bounds what is read over TLS before the dialer has proven its identity; TLS
// itself accepts much more, especially certificates.
const earlyBytesMax = 64 << 10

// errEarlyBytes is returned when a dialer sends more than that.
var errEarlyBytes = fmt.Errorf("more than %s came before the dialer has proven who it is", bytesize.Text(earlyBytesMax))

// earlyConn limits how much is read, until the limit is lifted, and lets the first byte be
// read in advance.
type earlyConn struct {
	net.Conn
	peeked []byte
	left   int // -1: unlimited
}

func newEarlyConn(conn net.Conn) *earlyConn { return &earlyConn{Conn: conn, left: earlyBytesMax} }

func (c *earlyConn) peek() (byte, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.Conn, first); err != nil {
		return 0, err
	}
	c.peeked = first
	return first[0], nil
}

// Read reads from the connection, beginning with the byte read in advance.
func (c *earlyConn) Read(b []byte) (int, error) {
	if len(c.peeked) > 0 {
		n := copy(b, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	if c.left < 0 {
		return c.Conn.Read(b)
	}
	if c.left == 0 && len(b) > 0 {
		return 0, errEarlyBytes
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// proven lifts the limit on reading, after the dialer has proven its identity.
func (c *peerConn) proven() {
	if secured, ok := c.Conn.(*tlsConn); ok && secured.early != nil {
		secured.early.left = -1
	}
}

// secure wraps a connection with TLS, if the port uses it, without sending anything yet.
// addr is the dialed address.
func (p *Port) secure(conn net.Conn, dialed bool, addr string) net.Conn {
	if p.cfg.Certificate == nil || dialed && p.cfg.TLSMode == TLSAccept {
		return conn
	}
	own, authorities := p.cfg.Certificate()
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{own},
	}
	if !dialed {
		cfg.ClientAuth = tls.RequestClientCert // negotiate requires it, with a readable refusal
		early := newEarlyConn(conn)
		return &tlsConn{Conn: tls.Server(early, cfg), raw: conn, authorities: authorities, early: early, either: p.cfg.TLSMode != TLSRequired}
	}
	host, _, _ := net.SplitHostPort(addr) // it was dialed, so it has a host
	cfg.RootCAs, cfg.ServerName = authorities, host
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	secured := &tlsConn{Conn: tls.Client(conn, cfg), raw: conn, dialed: true, authorities: authorities}
	if len(own.Certificate) > 0 {
		secured.own = own.Certificate[0]
	}
	return secured
}

// negotiate performs the TLS handshake within the connection's deadline. A *refusal should be
// sent to the other side, within TLS or, if that side does not use it, without.
func (c *tlsConn) negotiate() error {
	if c.either {
		first, err := c.early.peek()
		if err != nil {
			return fmt.Errorf("%w: read preamble: %w", errHandshake, err)
		}
		if c.plain = first != firstByteTLS; c.plain {
			return nil
		}
	}
	err := c.Handshake()
	var noTLS tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case err == nil && !c.dialed:
		return c.checkDialer(time.Now())
	case err == nil:
		return nil
	case errors.As(err, &noTLS) && noTLS.Conn != nil && c.dialed:
		return refuse("this node wants mutual TLS and the other side speaks none: give both nodes certificates, or neither (--peer-tls-cert-file); --peer-tls-mode switches it on while they serve")
	case errors.As(err, &noTLS) && noTLS.Conn != nil && noTLS.RecordHeader[0] == newPreamble(PurposeRaft)[0]:
		return refuse("this node wants mutual TLS and the dialer speaks none: give both nodes certificates, or neither (--peer-tls-cert-file); --peer-tls-mode switches it on while they serve")
	case errors.As(err, &noTLS) && noTLS.Conn != nil:
		return fmt.Errorf("%w: the dialer is not a claimq node", errHandshake)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("%w: the other side does not take this node's certificate, its log says why: %w", errHandshake, err)
	case c.dialed && isCertificateError(err):
		return refuse("the certificate of the other side is not to be trusted: %v", err)
	case c.dialed && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return fmt.Errorf("%w: the other side broke off TLS's handshake (it may be no claimq peer port, or one without TLS): %w", errHandshake, err)
	default:
		return fmt.Errorf("%w: TLS: %w", errHandshake, err)
	}
}

func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// checkDialer checks the dialer's certificate, except for its names.
func (c *tlsConn) checkDialer(now time.Time) error {
	chain := c.ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return refuse("the dialer has no certificate: nodes show theirs to each other")
	}
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: c.authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return refuse("the certificate of the dialer is not to be trusted: %s", Printable(err.Error()))
	}
	return nil
}

// checkName checks that the dialer's certificate is for the node id, or for the host of the
// peer address.
func (c *tlsConn) checkName(nodeID, peerAddr string) error {
	leaf := c.ConnectionState().PeerCertificates[0]
	if leaf.VerifyHostname(nodeID) == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(peerAddr)
	if err == nil && host != "" && leaf.VerifyHostname(host) == nil {
		return nil
	}
	return fmt.Errorf("the certificate of the dialer is neither for its node id, %q, nor for the host of its peer address, %q: it is for %s", nodeID, peerAddr, certificateNames(leaf))
}

// channelLabel is the label for exporting a TLS channel's secret.
const channelLabel = "EXPORTER-claimq-peer-handshake"

// channelOf returns a secret that only the two ends of the connection's TLS know, or nil
// without TLS. The TLS handshake must be complete.
func channelOf(conn net.Conn) ([]byte, error) {
	secured := tlsOf(conn)
	if secured == nil {
		return nil, nil
	}
	state := secured.ConnectionState()
	secret, err := state.ExportKeyingMaterial(channelLabel, nil, channelSize)
	if err != nil {
		return nil, fmt.Errorf("%w: TLS: %w", errHandshake, err)
	}
	return secret, nil
}

// tlsOf returns the connection's TLS after the handshake, or nil if it has none.
func tlsOf(conn net.Conn) *tlsConn {
	if secured, ok := conn.(*tlsConn); ok && !secured.plain {
		return secured
	}
	return nil
}

// channelSize is the size of that secret.
const channelSize = 32

// certificateNames lists the names of a certificate for a log.
func certificateNames(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	return Printable(strings.Join(names, ", "))
}

// Read reads from the connection. An end without TLS's close message counts as a normal
// end, because all messages between nodes state their own length.
func (c *tlsConn) Read(b []byte) (int, error) {
	if c.plain {
		return c.early.Read(b)
	}
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Write writes to the connection.
func (c *tlsConn) Write(b []byte) (int, error) {
	if c.plain {
		return c.raw.Write(b)
	}
	return c.Conn.Write(b)
}

// Close closes the connection at once, without TLS's close message, which would wait for a
// peer that does not read.
func (c *tlsConn) Close() error { return c.raw.Close() }

// CloseWrite closes the sending side: of TLS, if its handshake is complete, and of TCP
// below it.
func (c *tlsConn) CloseWrite() error {
	if c.ConnectionState().HandshakeComplete {
		if err := c.Conn.CloseWrite(); err != nil {
			return err
		}
	}
	if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// rawOf returns the connection below TLS, or conn itself.
func rawOf(conn net.Conn) net.Conn {
	if secured, ok := conn.(*tlsConn); ok {
		return secured.raw
	}
	return conn
}

// negotiateTLS performs the TLS handshake of a connection of the port, if it uses TLS. A refused
// dialer is told the reason.
func negotiateTLS(c *peerConn) error {
	secured, ok := c.Conn.(*tlsConn)
	if !ok {
		return nil
	}
	err := secured.negotiate()
	var reason *refusal
	if !errors.As(err, &reason) || secured.dialed {
		return err
	}
	var to io.Writer = c
	if !secured.ConnectionState().HandshakeComplete { // it does not use TLS
		to = secured.raw
	}
	// The dialer may be gone; only the refusal itself counts.
	_, _ = to.Write(newFrame(frameRefuse, cutText(reason.text, refusalBytesMax)))
	return err
}
