package peer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claimq/claimq/cluster/nodekey"
)

// The handshake opens every connection of the peer port. After a preamble of five bytes,
// which the dialer sends, both sides exchange frames:
//
//	dialer                                   acceptor
//	  'C' 'L' 'Q' version purpose
//	  H nonce(32) flags(1) JSON hello   ──►
//	                                    ◄──  H nonce(32) flags(1) JSON hello
//	  P proof(96)                       ──►                   or R text
//	                                    ◄──  A proof(96)      or R text
//
//	frame:  [kind, 1 byte][length of the payload, uint16 big endian][payload]
//	flags:  bit 0 = this side shows a join key
//	proof:  HMAC-SHA256(join key, said)(32) Ed25519(node's key, said)(64)
//	said:   role 0x00 preamble, dialer's H, acceptor's H, channel
//
// The HMAC proves that a side has the join key, the signature which node it is: a node's
// UUID is a hash of its public key (package nodekey), and the hello contains the key. So a
// node that knows a member's UUID, for instance from Raft's configuration, can tell that
// member from all other nodes.
//
// A proof covers both hellos and both nonces byte for byte, and the role of the side that
// gives it, so nothing can be swapped, replayed or reflected. It also covers the node that
// the dialer wants to reach, and with TLS (tls.go) the channel itself, so that the acceptor
// cannot pass as the dialer elsewhere. Only a connection of PurposeMeet may leave out the
// node to reach, because it gives no member's rights. The dialer proves itself first, so
// that a stranger never gets a proof to attack. The HMAC of a side that shows no join key
// is zeros; each side shows one key and may accept several (joinkeys.go), so that keys can
// be replaced. After the handshake nothing is encrypted or signed: that needs TLS.
const (
	handshakeVersion = 3

	frameHello  = 'H'
	frameProof  = 'P'
	frameAccept = 'A'
	frameRefuse = 'R'

	nonceSize = 32
	macSize   = sha256.Size
	proofSize = macSize + ed25519.SignatureSize
	flagKey   = 1

	// helloBytesMax bounds the payload of a hello, including nonce and flags.
	helloBytesMax = 4 << 10
	// refusalBytesMax bounds the text of a refusal.
	refusalBytesMax = 1 << 10
	// helloFieldMax bounds each text in a hello, in bytes.
	helloFieldMax = 256

	roleDialer   = "claimq peer handshake 2 dialer"
	roleAcceptor = "claimq peer handshake 2 acceptor"
)

// Purpose is the use of a connection of the peer port.
type Purpose byte

// The purposes. The acceptor refuses all others.
const (
	PurposeRaft Purpose = 'r' // Raft's own messages
	PurposeHTTP Purpose = 'h' // calls between members
	// PurposeStream is for clients' requests that are passed on to the leader.
	PurposeStream Purpose = 's'
	// PurposeMeet is for one call that nodes without membership may make; see isOpenCall.
	PurposeMeet Purpose = 'm'
)

// String returns the purpose's name for logs.
func (p Purpose) String() string {
	switch p {
	case PurposeRaft:
		return "raft"
	case PurposeHTTP:
		return "http"
	case PurposeStream:
		return "stream"
	case PurposeMeet:
		return "meet"
	default:
		return fmt.Sprintf("unknown purpose %#02x", byte(p))
	}
}

// Hello describes a node when a connection opens. The signature of its key proves UUID;
// everything else is the node's own claim.
type Hello struct {
	ClusterID    string `json:"cluster_id,omitempty"` // "" before the node belongs to a cluster
	UUID         string `json:"uuid"`                 // identity, from the data folder
	NodeID       string `json:"node_id"`              // the operator's name
	FeatureLevel uint32 `json:"feature_level"`        // highest level that the binary knows
	Version      string `json:"version"`              // of the binary
	PeerAddr     string `json:"peer_addr,omitempty"`  // advertised by the node
	Key          string `json:"key"`                  // public key from which UUID is derived; see nodekey.Encode
	// StartNumber and StartNonce identify the start of the node that this process is, or
	// will be once the others know of it. 0 = the binary is too old to report it.
	StartNumber uint64 `json:"start_number,omitempty"`
	StartNonce  string `json:"start_nonce,omitempty"`
}

// helloMessage is a hello in its encoded form.
type helloMessage struct {
	Hello
	// WantUUID is the node that the dialer wants to reach, "" if unknown, which only
	// PurposeMeet allows. The acceptor sends "".
	WantUUID string `json:"want_uuid,omitempty"`
}

// Errors of the handshake.
var (
	// errHandshake is returned when the other side does not follow the handshake, or breaks
	// it off.
	errHandshake = errors.New("peer handshake")
	// ErrRefused is returned when one side refuses the other: wrong key, cluster, node or
	// feature level. The text says which.
	ErrRefused = errors.New("peer connection refused")
)

// refusal is a reason that the other side is told. It is an ErrRefused.
type refusal struct {
	text string
	// missed is true if the other side wants the node of another identity.
	missed bool
}

func (r *refusal) Error() string        { return ErrRefused.Error() + ": " + r.text }
func (r *refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) *refusal {
	return &refusal{text: fmt.Sprintf(format, args...)}
}

// handshake is one side's part in opening a connection.
type handshake struct {
	keys JoinKeys
	self Hello
	// signer is the node's own key, matching self.
	signer ed25519.PrivateKey
	// channel is a secret that only the two ends of the TLS channel know; nil without TLS.
	channel []byte
	// admit decides last, after the other side has proven the key. Its error's text is sent
	// to the other side. nil admits all.
	admit func(Purpose, Hello) error
}

// dial performs the dialer's part on conn and returns the other node. want is the UUID of
// the node to reach, "" for any. The caller sets the deadline.
func (h handshake) dial(conn io.ReadWriter, purpose Purpose, want string) (Hello, error) {
	preamble := newPreamble(purpose)
	own, err := newHelloFrame(helloMessage{Hello: h.self, WantUUID: want}, h.keys.shows())
	if err != nil {
		return Hello{}, err
	}
	if _, err := conn.Write(append(bytes.Clone(preamble), own...)); err != nil {
		return Hello{}, fmt.Errorf("%w: send hello: %w", errHandshake, err)
	}
	theirs, err := readAnswer(conn, frameHello, helloBytesMax)
	if err != nil {
		return Hello{}, err
	}
	msg, hasKey, err := parseHello(theirs)
	if err != nil {
		return Hello{}, err
	}
	if err := h.checkAcceptor(msg.Hello, hasKey); err != nil {
		return msg.Hello, err
	}
	transcript := bytes.Join([][]byte{preamble, own, theirs, h.channel}, nil)
	_, err = conn.Write(newFrame(frameProof, h.proof(roleDialer, transcript)))
	if err != nil {
		err = fmt.Errorf("%w: send proof: %w", errHandshake, err)
	}
	var answer []byte
	if err == nil {
		answer, err = readAnswer(conn, frameAccept, proofSize)
	}
	// Only after the proof, because a node at another's address should not hear about a
	// mismatch from an unproven dialer.
	if want != "" && msg.UUID != want {
		return msg.Hello, refuse("the node there is %q with identity %s, not %s: its data folder is another one", msg.NodeID, msg.UUID, want)
	}
	if err != nil {
		return msg.Hello, err
	}
	if !h.showedKey(answer, hasKey, roleAcceptor, transcript) {
		return msg.Hello, refuse("node %q does not have this node's join key", msg.NodeID)
	}
	return msg.Hello, checkSignature(msg.Hello, answer, roleAcceptor, transcript)
}

// accept performs the acceptor's part on conn and returns the dialer and the purpose. The
// caller sets the deadline. The dialer is told the reason for a refusal.
func (h handshake) accept(conn io.ReadWriter) (Purpose, Hello, error) {
	purpose, from, err := h.acceptUntold(conn)
	var reason *refusal
	if errors.As(err, &reason) {
		// The dialer may be gone; only the refusal itself counts.
		_, _ = conn.Write(newFrame(frameRefuse, cutText(reason.text, refusalBytesMax)))
	}
	return purpose, from, err
}

// acceptUntold is accept, but does not tell the dialer of a refusal.
func (h handshake) acceptUntold(conn io.ReadWriter) (Purpose, Hello, error) {
	preamble, purpose, err := readPreamble(conn)
	if err != nil {
		return purpose, Hello{}, err
	}
	theirs, err := readFrame(conn, frameHello, helloBytesMax)
	if err != nil {
		return purpose, Hello{}, err
	}
	msg, hasKey, err := parseHello(theirs)
	if err != nil {
		return purpose, Hello{}, err
	}
	if err := h.checkDialer(purpose, msg, hasKey); err != nil {
		return purpose, msg.Hello, err
	}
	own, err := newHelloFrame(helloMessage{Hello: h.self}, h.keys.shows())
	if err != nil {
		return purpose, msg.Hello, err
	}
	if _, err := conn.Write(own); err != nil {
		return purpose, msg.Hello, fmt.Errorf("%w: send hello: %w", errHandshake, err)
	}
	proof, err := readFrame(conn, frameProof, proofSize)
	if err != nil {
		return purpose, msg.Hello, err
	}
	transcript := bytes.Join([][]byte{preamble, theirs, own, h.channel}, nil)
	if !h.showedKey(proof, hasKey, roleDialer, transcript) {
		return purpose, msg.Hello, refuse("node %q was given another join key than node %q: both need the same file in --join-key-file", msg.NodeID, h.self.NodeID)
	}
	if err := checkSignature(msg.Hello, proof, roleDialer, transcript); err != nil {
		return purpose, msg.Hello, err
	}
	if msg.WantUUID != "" && msg.WantUUID != h.self.UUID {
		r := refuse("this is node %q with identity %s, not %s: its data folder is another one", h.self.NodeID, h.self.UUID, msg.WantUUID)
		r.missed = true
		return purpose, msg.Hello, r
	}
	if h.admit != nil {
		if err := h.admit(purpose, msg.Hello); err != nil {
			return purpose, msg.Hello, refuse("%s", err)
		}
	}
	if _, err := conn.Write(newFrame(frameAccept, h.proof(roleAcceptor, transcript))); err != nil {
		return purpose, msg.Hello, fmt.Errorf("%w: send proof: %w", errHandshake, err)
	}
	return purpose, msg.Hello, nil
}

// checkAcceptor returns an error if the node that answered is not one to talk to.
func (h handshake) checkAcceptor(from Hello, hasKey bool) error {
	if err := h.checkKey(from, hasKey); err != nil {
		return err
	}
	return h.checkCluster(from)
}

// checkDialer returns an error if the dialing node may not continue.
func (h handshake) checkDialer(purpose Purpose, msg helloMessage, hasKey bool) error {
	if err := h.checkKey(msg.Hello, hasKey); err != nil {
		return err
	}
	if purpose != PurposeMeet && msg.WantUUID == "" {
		return refuse("the dialer does not say which node it wants")
	}
	if purpose == PurposeRaft && msg.UUID == h.self.UUID {
		return refuse("node %q has the identity of this node, %q: one data folder is a copy of the other", msg.NodeID, h.self.NodeID)
	}
	return h.checkCluster(msg.Hello)
}

func (h handshake) checkKey(other Hello, otherHasKey bool) error {
	switch {
	case !otherHasKey && !h.keys.TakesNone():
		return refuse("node %q has a join key, node %q has none: give it the same file with --join-key-file", h.self.NodeID, other.NodeID)
	case otherHasKey && !h.keys.TakesSome():
		return refuse("node %q has no join key, node %q has one: give it the same file with --join-key-file", h.self.NodeID, other.NodeID)
	default:
		return nil
	}
}

func (h handshake) checkCluster(other Hello) error {
	if h.self.ClusterID != "" && other.ClusterID != "" && h.self.ClusterID != other.ClusterID {
		return refuse("node %q belongs to cluster %s, node %q to cluster %s", h.self.NodeID, h.self.ClusterID, other.NodeID, other.ClusterID)
	}
	return nil
}

// said returns the bytes that the side in that role vouches for.
func said(role string, transcript []byte) []byte {
	return bytes.Join([][]byte{[]byte(role), {0}, transcript}, nil)
}

// proof returns this side's proof for the transcript in that role.
func (h handshake) proof(role string, transcript []byte) []byte {
	what := said(role, transcript)
	return append(macOf(h.keys.own(), what), ed25519.Sign(h.signer, what)...)
}

// showedKey reports whether the frame with the proof of the side in that role shows an
// accepted join key. some is whether that side claimed to show one.
func (h handshake) showedKey(frame []byte, some bool, role string, transcript []byte) bool {
	return h.keys.showed(frame[frameHeaderSize:][:macSize], some, said(role, transcript))
}

// checkSignature returns an error unless the frame with the proof of the side in that role
// proves its claimed identity.
func checkSignature(from Hello, frame []byte, role string, transcript []byte) error {
	public, err := nodekey.Decode(from.Key)
	if err != nil {
		return refuse("the key of node %q: %v", from.NodeID, err)
	}
	if nodekey.UUID(public) != from.UUID {
		return refuse("node %q shows another key than that of identity %s", from.NodeID, from.UUID)
	}
	if !ed25519.Verify(public, said(role, transcript), frame[frameHeaderSize:][macSize:]) {
		return refuse("node %q has not proven that it has the key of identity %s", from.NodeID, from.UUID)
	}
	return nil
}

const preambleSize = 5

func newPreamble(purpose Purpose) []byte {
	return []byte{'C', 'L', 'Q', handshakeVersion, byte(purpose)}
}

func readPreamble(r io.Reader) ([]byte, Purpose, error) {
	preamble := make([]byte, preambleSize)
	if _, err := io.ReadFull(r, preamble); err != nil {
		return nil, 0, fmt.Errorf("%w: read preamble: %w", errHandshake, err)
	}
	purpose := Purpose(preamble[4])
	if preamble[0] == firstByteTLS {
		return nil, 0, refuse("the dialer speaks TLS and this node does not: give both nodes certificates, or neither (--peer-tls-cert-file); --peer-tls-mode switches it on while they serve")
	}
	if !bytes.Equal(preamble[:3], newPreamble(purpose)[:3]) {
		return nil, 0, fmt.Errorf("%w: the dialer is not a claimq node", errHandshake)
	}
	if preamble[3] != handshakeVersion {
		return nil, purpose, refuse("the dialer speaks version %d of the peer protocol, this node speaks %d", preamble[3], handshakeVersion)
	}
	switch purpose {
	case PurposeRaft, PurposeHTTP, PurposeStream, PurposeMeet:
		return preamble, purpose, nil
	}
	return nil, purpose, refuse("the dialer wants a connection for an %v", purpose)
}

const frameHeaderSize = 3

func newFrame(kind byte, payload []byte) []byte {
	frame := make([]byte, frameHeaderSize, frameHeaderSize+len(payload))
	frame[0] = kind
	binary.BigEndian.PutUint16(frame[1:], uint16(len(payload))) //nolint:gosec // every payload is bounded far below 64 KiB
	return append(frame, payload...)
}

// readFrame returns one complete frame of that kind, including its header. It never reads
// beyond the frame, because others read what follows.
func readFrame(r io.Reader, kind byte, payloadMax int) ([]byte, error) {
	header := make([]byte, frameHeaderSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("%w: the other side broke off: %w", errHandshake, err)
	}
	if header[0] != kind {
		return nil, fmt.Errorf("%w: got frame %q, want %q", errHandshake, header[0], kind)
	}
	return readPayload(r, header, payloadMax)
}

func readPayload(r io.Reader, header []byte, payloadMax int) ([]byte, error) {
	kind, size := header[0], int(binary.BigEndian.Uint16(header[1:]))
	if size > payloadMax {
		return nil, refuse("frame %q of %d bytes is over the bound of %d", kind, size, payloadMax)
	}
	if (kind == frameProof || kind == frameAccept) && size != proofSize {
		return nil, fmt.Errorf("%w: proof of %d bytes, want %d", errHandshake, size, proofSize)
	}
	frame := make([]byte, frameHeaderSize+size)
	copy(frame, header)
	if _, err := io.ReadFull(r, frame[frameHeaderSize:]); err != nil {
		return nil, fmt.Errorf("%w: the other side broke off: %w", errHandshake, err)
	}
	return frame, nil
}

// readAnswer is readFrame for the dialer, which may get a refusal instead.
func readAnswer(r io.Reader, kind byte, payloadMax int) ([]byte, error) {
	header := make([]byte, frameHeaderSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("%w: the other side broke off (it may be no claimq peer port): %w", errHandshake, err)
	}
	switch header[0] {
	case kind:
		return readPayload(r, header, payloadMax)
	case frameRefuse:
		frame, err := readPayload(r, header, refusalBytesMax)
		if err != nil {
			return nil, err
		}
		return nil, refuse("the other side says: %s", Printable(string(frame[frameHeaderSize:])))
	default:
		return nil, fmt.Errorf("%w: got frame %q, want %q (it may be no claimq peer port)", errHandshake, header[0], kind)
	}
}

func newHelloFrame(msg helloMessage, hasKey bool) ([]byte, error) {
	text, err := json.Marshal(msg)
	if err != nil {
		return nil, fmt.Errorf("%w: encode hello: %w", errHandshake, err)
	}
	payload := make([]byte, nonceSize+1, nonceSize+1+len(text))
	// crypto/rand.Read never returns an error: it ends the program instead.
	_, _ = rand.Read(payload[:nonceSize])
	if hasKey {
		payload[nonceSize] = flagKey
	}
	payload = append(payload, text...)
	if len(payload) > helloBytesMax {
		return nil, fmt.Errorf("%w: own hello of %d bytes is over the bound of %d", errHandshake, len(payload), helloBytesMax)
	}
	return newFrame(frameHello, payload), nil
}

// parseHello returns the contents of a hello frame, with every text safe to log.
func parseHello(frame []byte) (msg helloMessage, hasKey bool, err error) {
	payload := frame[frameHeaderSize:]
	if len(payload) <= nonceSize {
		return msg, false, fmt.Errorf("%w: hello of %d bytes is too short", errHandshake, len(payload))
	}
	flags := payload[nonceSize]
	if flags&^flagKey != 0 {
		return msg, false, refuse("the hello has unknown flags %#02x", flags)
	}
	if err := json.Unmarshal(payload[nonceSize+1:], &msg); err != nil {
		return helloMessage{}, false, fmt.Errorf("%w: decode hello: %w", errHandshake, err)
	}
	for _, text := range []string{msg.ClusterID, msg.UUID, msg.NodeID, msg.Version, msg.PeerAddr, msg.Key, msg.StartNonce, msg.WantUUID} {
		if len(text) > helloFieldMax || text != Printable(text) {
			return helloMessage{}, false, refuse("a text in the hello is over %d bytes or not printable", helloFieldMax)
		}
	}
	if msg.UUID == "" || msg.NodeID == "" {
		return helloMessage{}, false, refuse("the hello names no node or no identity")
	}
	return msg, flags&flagKey != 0, nil
}

// Printable replaces characters that would garble a log line.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// cutText returns at most limit bytes of text, ending at a whole character.
func cutText(text string, limit int) []byte {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return []byte(text)
}
