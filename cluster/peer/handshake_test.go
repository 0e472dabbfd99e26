package peer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/cluster/nodekey"
	"github.com/claimq/claimq/cluster/peer/peertest"
)

var (
	testKey      = peertest.JoinKey()
	testOtherKey = []byte("another key of at least 32 characters")
)

func testHello(nodeID string) Hello {
	return Hello{
		ClusterID: "c1", UUID: peertest.UUID(nodeID), NodeID: nodeID, FeatureLevel: 1, Version: "v0.1.0",
		Key: nodekey.Encode(nodekey.Public(peertest.Signer(nodeID))),
	}
}

// testHandshake returns the side of the node of that name.
func testHandshake(nodeID string) handshake {
	return handshake{keys: JoinKeys{testKey}, self: testHello(nodeID), signer: peertest.Signer(nodeID)}
}

// handshakeCase is a dialer and an acceptor that agree, unless changed.
type handshakeCase struct {
	dialer, acceptor handshake
	purpose          Purpose
	want             string
}

func agreeing() handshakeCase {
	return handshakeCase{
		dialer:   testHandshake("n1"),
		acceptor: testHandshake("n2"),
		purpose:  PurposeRaft,
		want:     peertest.UUID("n2"),
	}
}

// shake runs both sides over a pipe and returns their results.
func (c handshakeCase) shake(t *testing.T) (dialed, accepted Hello, dialErr, acceptErr error) {
	t.Helper()
	a, b := net.Pipe()
	deadline := time.Now().Add(testWait)
	_ = a.SetDeadline(deadline)
	_ = b.SetDeadline(deadline)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer b.Close()
		_, accepted, acceptErr = c.acceptor.accept(b)
	}()
	dialed, dialErr = c.dialer.dial(a, c.purpose, c.want)
	_ = a.Close()
	<-done
	return dialed, accepted, dialErr, acceptErr
}

func TestHandshake_agreement(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*handshakeCase){
		"with a key on both sides":           func(*handshakeCase) {},
		"without a key on both sides":        func(c *handshakeCase) { c.dialer.keys, c.acceptor.keys = nil, nil },
		"with no target in mind":             func(c *handshakeCase) { c.purpose, c.want = PurposeMeet, "" },
		"when the dialer has no cluster yet": func(c *handshakeCase) { c.dialer.self.ClusterID = "" },
		"when the acceptor has none":         func(c *handshakeCase) { c.acceptor.self.ClusterID = "" },
		"for http":                           func(c *handshakeCase) { c.purpose = PurposeHTTP },
		"of a node with itself for http":     func(c *handshakeCase) { c.purpose, c.dialer = PurposeHTTP, c.acceptor },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := agreeing()
			change(&c)
			dialed, accepted, dialErr, acceptErr := c.shake(t)
			if dialErr != nil || acceptErr != nil {
				t.Fatalf("dial: %v, accept: %v", dialErr, acceptErr)
			}
			if dialed != c.acceptor.self || accepted != c.dialer.self {
				t.Fatalf("dialer met %+v, acceptor met %+v", dialed, accepted)
			}
		})
	}
}

// Both sides get the reason of a refusal, in words that say what to do.
func TestHandshake_refusal(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*handshakeCase)
		want   string // both sides report this
	}{
		"another key":             {func(c *handshakeCase) { c.dialer.keys = JoinKeys{testOtherKey} }, "another join key"},
		"a key of the dialer's":   {func(c *handshakeCase) { c.acceptor.keys = nil }, `node "n2" has no join key, node "n1" has one`},
		"a key of the acceptor's": {func(c *handshakeCase) { c.dialer.keys = nil }, `node "n2" has a join key, node "n1" has none`},
		"another cluster":         {func(c *handshakeCase) { c.dialer.self.ClusterID = "c2" }, "belongs to cluster"},
		"another target":          {func(c *handshakeCase) { c.want = "uuid-of-the-old-n2" }, "its data folder is another one"},
		"its own identity":        {func(c *handshakeCase) { c.dialer = testHandshake("n2") }, "is a copy of the other"},
		"no target":               {func(c *handshakeCase) { c.want = "" }, "does not say which node it wants"},
		"no identity":             {func(c *handshakeCase) { c.dialer.self.UUID = "" }, "no identity"},
		"a name not for logs":     {func(c *handshakeCase) { c.dialer.self.NodeID = "n1\nfake log line" }, "not printable"},
		"a level that is too low": {func(c *handshakeCase) {
			c.acceptor.admit = func(p Purpose, h Hello) error {
				if p == PurposeRaft && h.FeatureLevel < 2 {
					return errors.New("feature level 1 is below the cluster's, 2")
				}
				return nil
			}
		}, "feature level 1 is below"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := agreeing()
			tc.change(&c)
			_, _, dialErr, acceptErr := c.shake(t)
			for side, err := range map[string]error{"dialer": dialErr, "acceptor": acceptErr} {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s got %v, want a refusal with %q", side, err, tc.want)
				}
			}
		})
	}
}

// A dialer checks the acceptor as well: one that has no key, or only claims to be the
// wanted node, gets nothing.
func TestHandshake_dialerChecksAcceptor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer func(conn io.ReadWriter)
		want   string
	}{
		"claims to have a key": {func(conn io.ReadWriter) {
			answerHello(conn, testHello("n2"), true)
			_, _ = readFrame(conn, frameProof, proofSize)
			_, _ = conn.Write(newFrame(frameAccept, make([]byte, proofSize)))
		}, "does not have this node's join key"},
		"sends the proof back": {func(conn io.ReadWriter) {
			answerHello(conn, testHello("n2"), true)
			proof, _ := readFrame(conn, frameProof, proofSize)
			_, _ = conn.Write(newFrame(frameAccept, proof[frameHeaderSize:]))
		}, "does not have this node's join key"},
		"says that it has no key": {func(conn io.ReadWriter) { answerHello(conn, testHello("n2"), false) }, "has none"},
		"is another node":         {func(conn io.ReadWriter) { answerHello(conn, testHello("n3"), true) }, "its data folder is another one"},
		"is of another cluster": {func(conn io.ReadWriter) {
			h := testHello("n2")
			h.ClusterID = "c2"
			answerHello(conn, h, true)
		}, "belongs to cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer b.Close()
				_, _, _ = readPreamble(b)
				_, _ = readFrame(b, frameHello, helloBytesMax)
				tc.answer(b)
			}()
			c := agreeing()
			_, err := c.dialer.dial(a, c.purpose, c.want)
			_ = a.Close()
			<-done
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

func answerHello(w io.Writer, h Hello, hasKey bool) {
	frame, _ := newHelloFrame(helloMessage{Hello: h}, hasKey)
	_, _ = w.Write(frame)
}

// recorder records what the dialer sends.
type recorder struct {
	io.ReadWriter
	sent bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent.Write(b)
	return r.ReadWriter.Write(b)
}

// The recorded opening of one connection does not open another one, and neither does a
// changed one.
func TestHandshake_replayAndChange(t *testing.T) {
	t.Parallel()
	c := agreeing()
	a, b := net.Pipe()
	tape := &recorder{ReadWriter: a}
	done := make(chan error, 1)
	go func() {
		_, _, err := c.acceptor.accept(b)
		done <- err
	}()
	if _, err := c.dialer.dial(tape, c.purpose, c.want); err != nil {
		t.Fatalf("dial: %v", err)
	}
	if err := <-done; err != nil {
		t.Fatalf("accept: %v", err)
	}

	sent := tape.sent.Bytes()
	if err := acceptBytes(c.acceptor, sent); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "join key") {
		t.Fatalf("replayed: got %v, want a refusal for the key", err)
	}
	for name, change := range map[string]func(h *helloMessage){
		"node id": func(h *helloMessage) { h.NodeID = "n9" },
		"uuid":    func(h *helloMessage) { h.UUID = peertest.UUID("n9") },
		"level":   func(h *helloMessage) { h.FeatureLevel = 9 },
		"target":  func(h *helloMessage) { h.WantUUID = peertest.UUID("n9") },
	} {
		t.Run(name, func(t *testing.T) {
			err := shakeChanged(c, change)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "join key") {
				t.Fatalf("got %v, want a refusal for the key", err)
			}
		})
	}
	t.Run("purpose", func(t *testing.T) {
		err := shakeThrough(c, func(preamble, hello []byte) []byte {
			preamble[4] = byte(PurposeHTTP)
			return append(preamble, hello...)
		})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "join key") {
			t.Fatalf("got %v, want a refusal for the key", err)
		}
	})
}

// Even without a join key no node can pass as another: not with a recording, not with the
// other's public key, and not by relaying what the other says.
func TestHandshake_identityIsProven(t *testing.T) {
	t.Parallel()
	keyless := func() handshakeCase {
		c := agreeing()
		c.dialer.keys, c.acceptor.keys = nil, nil
		return c
	}
	for name, tc := range map[string]struct {
		change     func(*handshakeCase)
		dial, told string // claimed by the dialer, and shown to the acceptor
	}{
		"a dialer with another's public key": {
			func(c *handshakeCase) { c.dialer.signer = peertest.Signer("n9") },
			"has not proven that it has the key", "has not proven that it has the key",
		},
		"a dialer with another's identity": {
			func(c *handshakeCase) { c.dialer.self.UUID = peertest.UUID("n3") },
			"shows another key than that of identity", "shows another key than that of identity",
		},
		"a dialer without a key": {
			func(c *handshakeCase) { c.dialer.self.Key = "" },
			"not the base64 of an Ed25519 key", "not the base64 of an Ed25519 key",
		},
		"an acceptor with another's public key": {
			func(c *handshakeCase) { c.acceptor.signer = peertest.Signer("n9") },
			"has not proven that it has the key", "",
		},
		"an acceptor with another's identity": {
			func(c *handshakeCase) { c.acceptor.self.UUID, c.want = peertest.UUID("n3"), peertest.UUID("n3") },
			"shows another key than that of identity", "",
		},
		// A node that is dialed relays everything to a third node.
		"a dialer that wants another node": {
			func(c *handshakeCase) { c.want = peertest.UUID("n9") },
			"its data folder is another one", "its data folder is another one",
		},
		"a dialer at the other end of another channel": {
			func(c *handshakeCase) { c.dialer.channel, c.acceptor.channel = []byte("to n9"), []byte("from n9") },
			"has not proven that it has the key", "has not proven that it has the key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := keyless()
			tc.change(&c)
			_, _, dialErr, acceptErr := c.shake(t)
			if !errors.Is(dialErr, ErrRefused) || !strings.Contains(dialErr.Error(), tc.dial) {
				t.Errorf("the dialer got %v", dialErr)
			}
			if tc.told != "" && (!errors.Is(acceptErr, ErrRefused) || !strings.Contains(acceptErr.Error(), tc.told)) {
				t.Errorf("the acceptor got %v", acceptErr)
			}
		})
	}
	t.Run("a recording", func(t *testing.T) {
		t.Parallel()
		c := keyless()
		a, b := net.Pipe()
		tape := &recorder{ReadWriter: a}
		done := make(chan error, 1)
		go func() {
			_, _, err := c.acceptor.accept(b)
			done <- err
		}()
		if _, err := c.dialer.dial(tape, c.purpose, c.want); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := acceptBytes(c.acceptor, tape.sent.Bytes()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "has not proven") {
			t.Errorf("got %v", err)
		}
	})
}

// acceptBytes lets an acceptor read sent, and discards its answer.
func acceptBytes(h handshake, sent []byte) error {
	_, _, err := h.accept(struct {
		io.Reader
		io.Writer
	}{bytes.NewReader(sent), io.Discard})
	return err
}

// shakeChanged is a handshake with a man in the middle who changes the hello.
func shakeChanged(c handshakeCase, change func(*helloMessage)) error {
	return shakeThrough(c, func(preamble, frame []byte) []byte {
		var msg helloMessage
		_ = json.Unmarshal(frame[frameHeaderSize+nonceSize+1:], &msg)
		change(&msg)
		text, _ := json.Marshal(msg)
		payload := append(bytes.Clone(frame[frameHeaderSize:frameHeaderSize+nonceSize+1]), text...)
		return append(preamble, newFrame(frameHello, payload)...)
	})
}

// shakeThrough is a handshake with a man in the middle who replaces the dialer's opening
// and forwards everything else. It returns the acceptor's result.
func shakeThrough(c handshakeCase, replace func(preamble, helloFrame []byte) []byte) error {
	dialerSide, betweenLeft := net.Pipe()
	betweenRight, acceptorSide := net.Pipe()
	go func() {
		_, _ = c.dialer.dial(dialerSide, c.purpose, c.want)
		_ = dialerSide.Close()
	}()
	go func() {
		preamble, _, _ := readPreamble(betweenLeft)
		frame, _ := readFrame(betweenLeft, frameHello, helloBytesMax)
		_, _ = betweenRight.Write(replace(preamble, frame))
		go func() { _, _ = io.Copy(betweenLeft, betweenRight) }()
		_, _ = io.Copy(betweenRight, betweenLeft)
		_ = betweenRight.Close()
	}()
	_, _, err := c.acceptor.accept(acceptorSide)
	_ = acceptorSide.Close()
	_ = betweenLeft.Close()
	return err
}

func TestHandshake_bounds(t *testing.T) {
	t.Parallel()
	h := testHandshake("n2")
	h.keys = nil
	oversized := append(newPreamble(PurposeRaft), frameHello, 0, 0)
	binary.BigEndian.PutUint16(oversized[len(oversized)-2:], helloBytesMax+1)
	future := newPreamble(PurposeRaft)
	future[3] = handshakeVersion + 1
	flags := newFrame(frameHello, append(make([]byte, nonceSize), 0x80, '{', '}'))

	cases := map[string]struct {
		sent []byte
		is   error
		want string
	}{
		"an oversized hello":   {oversized, ErrRefused, "over the bound"},
		"a later version":      {future, ErrRefused, "version 4"},
		"an unknown purpose":   {newPreamble('x'), ErrRefused, "unknown purpose"},
		"unknown flags":        {append(newPreamble(PurposeRaft), flags...), ErrRefused, "unknown flags"},
		"another protocol":     {[]byte("GET / HTTP/1.1\r\n\r\n"), errHandshake, "not a claimq node"},
		"nothing":              {nil, errHandshake, "read preamble"},
		"half a preamble":      {newPreamble(PurposeRaft)[:3], errHandshake, "read preamble"},
		"a hello that is none": {append(newPreamble(PurposeRaft), newFrame(frameHello, make([]byte, nonceSize+1))...), errHandshake, "decode hello"},
		"too short a hello":    {append(newPreamble(PurposeRaft), newFrame(frameHello, []byte("x"))...), errHandshake, "too short"},
		"a proof first":        {append(newPreamble(PurposeRaft), newFrame(frameProof, make([]byte, proofSize))...), errHandshake, "want 'H'"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := acceptBytes(h, tc.sent); !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %v with %q", err, tc.is, tc.want)
			}
		})
	}
}

// FuzzHandshake throws bytes at both sides: they must always return, and must not admit a
// side without the key.
func FuzzHandshake(f *testing.F) {
	c := agreeing()
	frame, err := newHelloFrame(helloMessage{Hello: c.dialer.self, WantUUID: c.want}, true)
	if err != nil {
		f.Fatal(err)
	}
	proof := newFrame(frameProof, make([]byte, proofSize))
	f.Add(bytes.Join([][]byte{newPreamble(PurposeRaft), frame, proof}, nil))
	f.Add(bytes.Join([][]byte{frame, newFrame(frameAccept, make([]byte, proofSize))}, nil))
	f.Add(newFrame(frameRefuse, []byte("no")))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if err := acceptBytes(c.acceptor, sent); err == nil {
			t.Error("the acceptor let in who does not have the key")
		}
		a, b := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			go func() { _, _ = io.Copy(io.Discard, b) }()
			_, _ = b.Write(sent)
			_ = b.Close()
		}()
		if _, err := c.dialer.dial(a, PurposeMeet, ""); err == nil {
			t.Error("the dialer took who does not have the key")
		}
		_ = a.Close()
		<-done
	})
}
