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

// The peer port with mutual TLS: what nodes say to each other, the handshake of
// handshake.go first, is said inside of TLS 1.3. Who is who:
//
//   - Both certificates must be signed by one of the authorities that the other
//     side was given.
//   - The dialer wants the host that it dials among the names of the acceptor's
//     certificate.
//   - The acceptor wants the dialer's node id, or the host of its peer address,
//     among the names of the dialer's: those that the cluster has recorded for a
//     member, and those that its hello says of who is none yet.
//
// The proofs of the handshake within are bound to the very channel of TLS that they
// are said in.
//
// The first byte of a connection tells TLS (22) from what a node without TLS
// says ('C'), so that each side can tell the other what is missing, and so that a
// port can take both while TLS is switched on or off (TLSMode). What is wrong
// with a dialer's certificate the acceptor says in a refusal, within TLS, where
// TLS itself would only have a number for it.
//
// There are no session tickets: each connection is checked in full, with the
// certificates of that moment, and those that are open once the authorities change
// (uncovered.go).

// Certificate returns this node's certificate, with Leaf, and the authorities
// whose signature it takes on those of other nodes. It is asked for each
// connection, by several goroutines; what it returns is not changed.
type Certificate func() (tls.Certificate, *x509.CertPool)

// TLSMode says which connections of the peer port of a node with a Certificate
// speak TLS. Nodes take each other if their modes are next to each other; a node without
// a Certificate is next to TLSAccept. So TLS is switched on, or off, by a mode after
// the other on all nodes.
type TLSMode uint8

const (
	// TLSRequired is all of them. It alone keeps anybody out.
	TLSRequired TLSMode = iota
	// TLSPrefer is those that the node opens, and what others open may or may not. It
	// does not fall back: whoever is between the nodes cannot have it open one without.
	TLSPrefer
	// TLSAccept is none that the node opens, and what others open may or may not.
	TLSAccept
)

// firstByteTLS begins a connection of a dialer that speaks TLS: the type of a
// record that is part of a handshake.
const firstByteTLS = 0x16

// tlsConn is the TLS of one connection of the peer port, in either direction. Its
// hands are not shaken before shake.
type tlsConn struct {
	*tls.Conn
	raw         net.Conn
	dialed      bool
	authorities *x509.CertPool
	// early is what is below the TLS of an acceptor. either: the other side may do
	// without TLS; plain says, from shake on, that it does.
	early         *earlyConn
	either, plain bool
	own           []byte // of a dialer, the certificate that it shows
}

// earlyBytesMax bounds what is read of a dialer over TLS before it has proven who it
// is: what TLS itself takes, of certificates above all, is far more.
const earlyBytesMax = 64 << 10

// errEarlyBytes is returned for what comes beyond it.
var errEarlyBytes = fmt.Errorf("more than %s came before the dialer has proven who it is", bytesize.Text(earlyBytesMax))

// earlyConn is a connection of which so much is read and no more, until that is
// lifted, and of which one byte may be looked at before it is read.
type earlyConn struct {
	net.Conn
	peeked []byte
	left   int // -1: as much as comes
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

// Read reads from the connection, what was looked at first.
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

// proven lifts the bound on what is read, once the dialer has proven who it is.
func (c *peerConn) proven() {
	if secured, ok := c.Conn.(*tlsConn); ok && secured.early != nil {
		secured.early.left = -1
	}
}

// secure puts TLS around a connection, if the port speaks it. It says nothing
// yet. addr is whom the dialer means to reach.
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
		cfg.ClientAuth = tls.RequestClientCert // and shake requires it, in words
		early := newEarlyConn(conn)
		return &tlsConn{Conn: tls.Server(early, cfg), raw: conn, authorities: authorities, early: early, either: p.cfg.TLSMode != TLSRequired}
	}
	host, _, _ := net.SplitHostPort(addr) // it was dialed, so it has one
	cfg.RootCAs, cfg.ServerName = authorities, host
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	secured := &tlsConn{Conn: tls.Client(conn, cfg), raw: conn, dialed: true, authorities: authorities}
	if len(own.Certificate) > 0 {
		secured.own = own.Certificate[0]
	}
	return secured
}

// shake shakes TLS's hands within the connection's deadline. A *refusal is one
// that the other side should be told, within TLS or, if that side speaks none,
// without.
func (c *tlsConn) shake() error {
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
		return fmt.Errorf("%w: whoever dialed is not a claimq node", errHandshake)
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

// checkDialer checks the dialer's certificate, but for its names.
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

// checkName checks that the dialer's certificate is for the node with that id and
// that peer address: for the one or for the host of the other.
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

// channelLabel is what a channel of TLS is asked for its secret by.
const channelLabel = "EXPORTER-claimq-peer-handshake"

// channelOf returns what both ends of the connection's TLS know, and of no other
// connection; nil without TLS. Its hands are shaken.
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

// tlsOf returns the TLS that a connection, whose hands are shaken, speaks; nil for none.
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
		return "no name at all"
	}
	return Printable(strings.Join(names, ", "))
}

// Read reads from the connection. An end without TLS's word for it is an end as
// that of TCP: whatever nodes say to each other says itself how long it is.
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

// Close ends the connection at once, as that of a plain one does: TLS's word for
// the end would wait for a peer that does not read.
func (c *tlsConn) Close() error { return c.raw.Close() }

// CloseWrite ends the sending side: of TLS, if its hands were shaken, and of TCP
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

// shakeTLS is shake for a connection of the port, which may be without TLS. A
// dialer that is refused is told so.
func shakeTLS(c *peerConn) error {
	secured, ok := c.Conn.(*tlsConn)
	if !ok {
		return nil
	}
	err := secured.shake()
	var reason *refusal
	if !errors.As(err, &reason) || secured.dialed {
		return err
	}
	var to io.Writer = c
	if !secured.ConnectionState().HandshakeComplete { // it speaks no TLS
		to = secured.raw
	}
	// The dialer may be gone: then the refusal itself is what matters.
	_, _ = to.Write(newFrame(frameRefuse, cutText(reason.text, refusalBytesMax)))
	return err
}
