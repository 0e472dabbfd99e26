package fuzz

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"time"
)

// The handshake of the peer port, see cluster/peer/handshake.go.
const (
	preamble     = "CLQ\x03"
	nonceSize    = 32
	frameMax     = 64 << 10
	dialerRole   = "claimq peer handshake 2 dialer"
	purposeCount = 4
	// passingSize is the length of what a node says of a request, see cluster/peer/stream.go.
	passingSize = 21
)

// purposes lists the purposes of connections to the peer port.
const purposes = "rhsm"

// errForged is returned when a node accepts a member without that one's key.
var errForged = errors.New("a node shook hands with a forged member")

// errShaking is returned when a node does not shake hands.
var errShaking = errors.New("shake hands")

// foe sends to a peer port. It is for one goroutine.
type foe struct {
	rng     *rand.Rand
	make    *maker
	members []Node // that it pretends to be, with or without their keys
	joinKey []byte // empty if the nodes have no key
	addr    string
	done    int // requests that it forwarded and that were done
}

// attack opens one connection and sends something over it. It returns what is wrong with an
// answer, "" if nothing.
func (f *foe) attack(ctx context.Context) string {
	c, err := dialTCP(ctx, f.addr)
	if err != nil {
		return "" // whether the node still runs is checked separately
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(oddTimeout))
	switch f.rng.Intn(7) {
	case 0:
		f.throw(c, randomBytes(f.rng, 3000))
	case 1:
		f.throw(c, append([]byte(preamble+string(f.purpose())), randomBytes(f.rng, 600)...))
	case 2:
		f.throw(c, mutateBytes(f.rng, f.hello(f.purpose(), f.disguise())))
	case 3: // the right hello and a wrong proof
		f.throw(c, append(f.hello(f.purpose(), f.disguise()), frame('P', randomBytes(f.rng, sha256.Size+ed25519.SignatureSize))...))
	case 4:
		_ = c.SetDeadline(time.Now().Add(answerTimeout))
		return f.request(c)
	case 5:
		return f.replay(ctx, c)
	default:
		return f.frames(c)
	}
	return ""
}

// forgery returns what is wrong with a node's end of a handshake, "" if nothing.
func forgery(err error) string {
	if errors.Is(err, errForged) {
		return err.Error()
	}
	return ""
}

func (f *foe) purpose() byte { return purposes[f.rng.Intn(purposeCount)] }

// throw sends bytes and reads an answer, if any.
func (f *foe) throw(c net.Conn, b []byte) {
	if _, err := c.Write(b); err == nil && f.rng.Intn(4) != 0 {
		_, _ = io.CopyN(io.Discard, c, 1)
	}
}

func frame(kind byte, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(payload))), payload...) //nolint:gosec // short
}

// guise is the identity that the foe claims on a connection.
type guise struct {
	uuid, nodeID string
	key          ed25519.PrivateKey
	joinKey      []byte
	forged       bool // it claims to be a member and has another key, or another join key
}

// disguise draws an unknown node, a member, or a node that claims to be that member,
// sometimes without the join key.
func (f *foe) disguise() guise {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = f.rng.Read(seed)
	g := guise{uuid: fmt.Sprintf("fuzz-%d", f.rng.Int()), nodeID: "fuzz", key: ed25519.NewKeyFromSeed(seed), joinKey: f.joinKey}
	if draw := f.rng.Intn(8); draw != 0 && len(f.members) > 0 {
		member := f.members[f.rng.Intn(len(f.members))]
		g.uuid, g.nodeID, g.forged = member.UUID, member.ID, true
		if draw > 2 && len(member.Key) > 0 {
			g.key, g.forged = member.Key, false
		}
	}
	if len(f.joinKey) > 0 && f.rng.Intn(8) == 0 {
		g.joinKey, g.forged = randomBytes(f.rng, 64), true
	}
	return g
}

// member returns the guise of a node other than the one at the foe's address, with that
// one's key.
func (f *foe) member() (g guise, ok bool) {
	for _, m := range f.members {
		if m.PeerAddr != f.addr && len(m.Key) > 0 {
			return guise{uuid: m.UUID, nodeID: m.ID, key: m.Key, joinKey: f.joinKey}, true
		}
	}
	return guise{}, false
}

// replay shakes hands as a member, and sends the same bytes on a second connection, which
// the node must not accept as that member.
func (f *foe) replay(ctx context.Context, c net.Conn) string {
	g, ok := f.member()
	if !ok {
		return ""
	}
	var said bytes.Buffer
	if err := f.shake(c, f.purpose(), g, &said); err != nil {
		return ""
	}
	again, err := dialTCP(ctx, f.addr)
	if err != nil {
		return ""
	}
	defer func() { _ = again.Close() }()
	_ = again.SetDeadline(time.Now().Add(oddTimeout))
	if _, err := again.Write(said.Bytes()); err != nil {
		return ""
	}
	for range 2 {
		theirs, err := readFrame(again)
		if err == nil && theirs[0] == 'A' {
			return "a node shook hands with who repeated what a member had said"
		}
	}
	return ""
}

// hello returns the preamble and the hello of g.
func (f *foe) hello(purpose byte, g guise) []byte {
	want := ""
	for _, m := range f.members {
		if m.PeerAddr == f.addr {
			want = m.UUID
		}
	}
	public := base64.RawStdEncoding.EncodeToString(g.key.Public().(ed25519.PublicKey))
	text := fmt.Appendf(nil, `{"uuid":%q,"node_id":%q,"feature_level":99,"version":"fuzz","key":%q,"want_uuid":%q}`, g.uuid, g.nodeID, public, want)
	payload := make([]byte, nonceSize, nonceSize+1+len(text))
	_, _ = f.rng.Read(payload)
	flags := byte(0)
	if len(f.joinKey) > 0 {
		flags = 1
	}
	payload = append(append(payload, flags), text...)
	return append([]byte(preamble+string(purpose)), frame('H', payload)...)
}

// shake shakes hands as g, and copies what it sends to said. errForged: a node has accepted
// g as the member that it is not.
func (f *foe) shake(c net.Conn, purpose byte, g guise, said io.Writer) error {
	own := f.hello(purpose, g)
	to := io.MultiWriter(c, said)
	if _, err := to.Write(own); err != nil {
		return err
	}
	theirs, err := readFrame(c)
	if err != nil {
		return err
	}
	if theirs[0] != 'H' {
		return fmt.Errorf("%w: %q", errShaking, theirs)
	}
	transcript := bytes.Join([][]byte{[]byte(dialerRole), {0}, own, theirs}, nil)
	proof := make([]byte, sha256.Size)
	if len(g.joinKey) > 0 {
		mac := hmac.New(sha256.New, g.joinKey)
		mac.Write(transcript)
		proof = mac.Sum(nil)
	}
	if _, err := to.Write(frame('P', append(proof, ed25519.Sign(g.key, transcript)...))); err != nil {
		return err
	}
	accepted, err := readFrame(c)
	if err == nil && accepted[0] != 'A' {
		err = fmt.Errorf("%w: %q", errShaking, accepted)
	}
	if err == nil && g.forged {
		err = errForged
	}
	return err
}

// readFrame reads one frame of the handshake with its header.
func readFrame(r io.Reader) ([]byte, error) {
	header := make([]byte, 3)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	b := append(header, make([]byte, binary.BigEndian.Uint16(header[1:]))...)
	_, err := io.ReadFull(r, b[3:])
	return b, err
}

// request sends a request as a node forwards it, or a call between nodes.
func (f *foe) request(c net.Conn) string {
	if f.rng.Intn(5) == 0 {
		return f.call(c)
	}
	g := f.disguise()
	return f.forward(c, g, []kind{kindValid, kindBody, kindHeaders}[f.rng.Intn(3)])
}

// forwardAsMember sends a valid request as a member that forwards it.
func (f *foe) forwardAsMember(ctx context.Context) string {
	g, ok := f.member()
	if !ok {
		return ""
	}
	c, err := dialTCP(ctx, f.addr)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(answerTimeout))
	return f.forward(c, g, kindValid)
}

// forward shakes hands as g and sends a request of the kind, as a node forwards it. It returns
// what is wrong with the answer, "" if nothing.
func (f *foe) forward(c net.Conn, g guise, k kind) string {
	if err := f.shake(c, 's', g, io.Discard); err != nil {
		return forgery(err)
	}
	req := f.make.make(k)
	if !req.sane {
		_ = c.SetDeadline(time.Now().Add(oddTimeout))
	}
	// What the node says of the request; whatever it is, it gives no rights.
	message := append([]byte{byte(f.rng.Intn(4))}, randomBytes(f.rng, 8)...)
	message = append(append(message, make([]byte, passingSize)...)[:passingSize], req.raw...)
	for len(message) > 0 {
		part := message[:min(len(message), frameMax)]
		message = message[len(part):]
		kind := byte('q')
		if len(message) > 0 {
			kind = 'Q'
		}
		if _, err := c.Write(append(frameHeader(kind, 1, len(part)), part...)); err != nil {
			return ""
		}
	}
	text := readAnswer(c)
	over := conn{c: c, r: bufio.NewReader(bytes.NewReader(text))}
	a := over.read(&req)
	if a.status == 0 {
		return ""
	}
	if a.status/100 == 2 {
		f.done++
	}
	if wrong := judge(&request{method: req.method, kind: kindPeer}, &a); wrong != "" {
		return wrong + " to " + show(&req)
	}
	return ""
}

// readAnswer reads the answer of the stream 1, as far as it comes.
func readAnswer(c net.Conn) (text []byte) {
	r := bufio.NewReader(c)
	for some := false; ; {
		var header [9]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return text
		}
		payload := make([]byte, min(binary.BigEndian.Uint32(header[5:]), frameMax))
		if _, err := io.ReadFull(r, payload); err != nil {
			return text
		}
		kind := header[0]
		if kind != 'A' && kind != 'a' {
			continue
		}
		if !some && len(payload) > 0 {
			some, payload = true, payload[1:] // its flags
			if kind == 'A' {
				_, _ = c.Write(frameHeader('m', 1, 0))
			}
		}
		if text = append(text, payload...); kind == 'a' || len(text) > answerBytesMax {
			return text
		}
	}
}

// frameHeader returns the header of a frame of a stream.
func frameHeader(kind byte, stream uint32, size int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, stream)
	return binary.BigEndian.AppendUint32(b, uint32(size)) //nolint:gosec // small
}

// call makes a call between nodes that changes nothing.
func (f *foe) call(c net.Conn) string {
	if err := f.shake(c, 'h', f.disguise(), io.Discard); err != nil {
		return forgery(err)
	}
	body := mutate(f.rng, []byte(`{"index":7,"hash":"00"}`))
	name := []string{"status", "hash", "x"}[f.rng.Intn(3)]
	if _, err := fmt.Fprintf(c, "POST /peer/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", name, len(body), body); err != nil {
		return ""
	}
	over := conn{c: c, r: bufio.NewReader(c)}
	over.read(&request{method: http.MethodPost, sane: true}) // a node may answer another with 500
	return ""
}

// frames sends frames of the connection for shared requests, or of Raft's, some of them
// broken. It returns what is wrong, "" if nothing.
func (f *foe) frames(c net.Conn) string {
	purpose := []byte{'r', 's', 's', 's'}[f.rng.Intn(4)]
	if err := f.shake(c, purpose, f.disguise(), io.Discard); err != nil {
		return forgery(err)
	}
	if purpose == 'r' {
		f.throw(c, randomBytes(f.rng, 2000))
		return ""
	}
	var b []byte
	for range 1 + f.rng.Intn(5) {
		req := f.make.make(kindBody)
		payload := req.raw
		if f.rng.Intn(3) == 0 {
			payload = randomBytes(f.rng, 500)
		}
		size := len(payload)
		if f.rng.Intn(6) == 0 {
			size = f.rng.Intn(frameMax * 8)
		}
		b = append(b, "qqqqQcpmduwAaX"[f.rng.Intn(14)])
		b = binary.BigEndian.AppendUint32(b, uint32(f.rng.Intn(4))) //nolint:gosec // small
		b = binary.BigEndian.AppendUint32(b, uint32(size))          //nolint:gosec // small
		b = append(b, payload...)
	}
	if f.rng.Intn(3) == 0 {
		b = mutateBytes(f.rng, bytes.Clone(b))
	}
	f.throw(c, b)
	return ""
}
