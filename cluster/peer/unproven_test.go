package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// asked records everything that a port asks or tells its node.
type asked struct {
	mu   sync.Mutex
	what []string
}

func (a *asked) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.what = append(a.what, what)
}

func (a *asked) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.what)
}

// openAskedPort opens a port that records everything that it asks its node and hands on.
func openAskedPort(t *testing.T, a *asked, change func(*Config)) *Port {
	t.Helper()
	p := openTestPort(t, "n2", func(c *Config) {
		c.HandshakeTimeout = 5 * time.Second
		c.Admit = func(context.Context, Purpose, Hello) error { a.note("admit"); return nil }
		c.Member = func(Hello) bool { a.note("member"); return true }
		c.RaftPeer = func(context.Context, Hello, string) error { a.note("raft peer"); return nil }
		c.Recorded = func(string) (string, string) { a.note("recorded"); return "", "" }
		c.TargetUUID = func(string) string { a.note("target"); return "" }
		c.Missed = func(Hello) { a.note("missed") }
		change(c)
	})
	for name := range unprovenCalls {
		p.Handle(name, func(context.Context, Hello, []byte) ([]byte, error) { a.note(name); return nil, nil })
	}
	p.SetForwardHandler(func(*fasthttp.RequestCtx) { a.note("forwarded") })
	layer := p.StreamLayer()
	var raftConns sync.WaitGroup
	raftConns.Go(func() {
		for {
			conn, err := layer.Accept()
			if err != nil {
				return
			}
			a.note("raft")
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = layer.Close(); raftConns.Wait() })
	return p
}

// unprovenCalls are the open calls, and one that only members make.
var unprovenCalls = map[string]bool{
	CallMeet: true, CallJoin: true, CallWho: true, CallAdmitted: true, CallStanding: true, "status": true,
}

// unprovenTexts returns, by name, all kinds of messages from a sender that has neither the
// join key nor a member's key: in place of the handshake, and in the middle of it.
func unprovenTexts() map[string][]byte {
	texts := map[string][]byte{
		"nothing": {}, "TLS": {firstByteTLS, 3, 1, 0, 5, 1, 2, 3, 4, 5},
		"an API request": []byte("POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"),
	}
	after := map[string][]byte{}
	for name := range unprovenCalls {
		after["call "+name] = fmt.Appendf(nil, "POST /peer/%s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", name)
	}
	after["an API request"] = texts["an API request"]
	for _, kind := range []byte{frameHello, frameProof, frameAccept, frameRefuse} {
		for _, size := range []int{0, proofSize, helloBytesMax, 0xffff} {
			after[fmt.Sprintf("frame %q of %d", kind, size)] = append(binary.BigEndian.AppendUint16([]byte{kind}, uint16(size)), make([]byte, size)...)
		}
	}
	for _, kind := range []byte{frameRequest, frameCancel, framePart, frameLastPart, framePing} {
		after[fmt.Sprintf("stream frame %q", kind)] = append([]byte{kind, 0, 0, 0, 1, 0, 0, 0, 2}, "{}"...)
	}
	for kind := range byte(8) { // Raft's kinds of messages
		after[fmt.Sprintf("Raft's message %d", kind)] = append([]byte{kind}, make([]byte, 64)...)
	}
	for _, purpose := range []Purpose{PurposeRaft, PurposeHTTP, PurposeStream, PurposeMeet, 'x'} {
		preamble := newPreamble(purpose)
		for _, who := range []Hello{testHello("n1"), testHello("n2"), {NodeID: "n1", UUID: peertest.UUID("n1"), ClusterID: "other"}, {}} {
			frame, _ := newHelloFrame(helloMessage{Hello: who, WantUUID: peertest.UUID("n2")}, true)
			missing, _ := newHelloFrame(helloMessage{Hello: who, WantUUID: peertest.UUID("n5")}, true)
			said := fmt.Sprintf("%s, hello of %q", purpose, who.NodeID+who.ClusterID)
			texts[said] = slices.Concat(preamble, frame)
			texts[said+", proof of nothing"] = slices.Concat(preamble, frame, newFrame(frameProof, make([]byte, proofSize)))
			texts[said+", proof of nothing to another"] = slices.Concat(preamble, missing, newFrame(frameProof, make([]byte, proofSize)))
			texts[said+", two hellos"] = slices.Concat(preamble, frame, frame)
			if who.NodeID != "n1" || who.Key == "" {
				continue
			}
			for name, text := range after {
				texts[said+", "+name] = slices.Concat(preamble, frame, text)
			}
		}
		for name, text := range after {
			texts[purpose.String()+", "+name] = slices.Concat(preamble, text)
		}
	}
	return texts
}

// Messages sent before the join key and the sender were proven change nothing: the node is
// not even asked, nothing is forwarded or remembered, and the log does not fill.
func TestPort_unprovenChangesNothing(t *testing.T) {
	leavesNothing(t)
	authority := certstest.NewAuthority(t, "ours")
	texts := unprovenTexts()
	for name, change := range map[string]func(*Config){
		"without TLS": func(c *Config) { c.Certificate = nil },
		"with either": func(c *Config) {
			c.Certificate, c.TLSMode = peertest.Certificate(t, authority, authority.Issue([]string{"127.0.0.1"})), TLSAccept
		},
		"within TLS": func(c *Config) {
			c.Certificate = peertest.Certificate(t, authority, authority.Issue([]string{"127.0.0.1"}))
		},
	} {
		var a asked
		var log logText
		began := time.Now()
		p := openAskedPort(t, &a, func(c *Config) { change(c); c.Logger = log.logger() })
		certificate := authority.Issue([]string{"127.0.0.1", "n1"}).TLS(t)
		var sending sync.WaitGroup
		slots := make(chan struct{}, 64)
		for what, text := range texts {
			slots <- struct{}{}
			sending.Go(func() {
				defer func() { <-slots }()
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testWait))
				var over interface {
					net.Conn
					CloseWrite() error
				} = conn.(*net.TCPConn)
				if name == "within TLS" { // a certificate alone does not make a node
					over = tls.Client(conn, &tls.Config{RootCAs: authority.Pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{certificate}})
				}
				_, _ = over.Write(text)
				_ = over.CloseWrite()
				answer, _ := io.ReadAll(over)
				const alert = 0x15 // of TLS
				if len(answer) > 0 && answer[0] != frameHello && answer[0] != frameRefuse && answer[0] != alert {
					t.Errorf("%s: %s is answered with %.80q", name, what, answer)
				}
				if bytes.Contains(answer, []byte("HTTP/1.1")) {
					t.Errorf("%s: %s is answered with %.80q", name, what, answer)
				}
			})
		}
		sending.Wait()
		waitUntil(t, "no connection and no place to be taken", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.inbound == 0 && len(p.conns) == 0 && p.meeting.Len()+p.pending.Len()+len(p.handshakes) == 0
		})
		if all := a.all(); len(all) > 0 {
			slices.Sort(all)
			t.Errorf("%s: the node was asked %v", name, slices.Compact(all))
		}
		if there := p.whereabouts.All(); len(there) > 0 {
			t.Errorf("%s: remembered are %v", name, there)
		}
		lines, bound := log.count("\n"), 2+int(time.Since(began)/RefusalLogInterval)
		if lines > bound {
			t.Errorf("%s: %d lines in the log for %d connections in %v, want %d at most", name, lines, len(texts), time.Since(began), bound)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The port bounds what TLS reads from an unproven sender.
func TestPort_unprovenCertificates(t *testing.T) {
	t.Parallel()
	ours := certstest.NewAuthority(t, "ours")
	var log logText
	p := openTestPort(t, "n2", func(c *Config) {
		c.Certificate, c.Logger = peertest.Certificate(t, ours, ours.Issue([]string{"127.0.0.1"})), log.logger()
	})
	own := ours.Issue([]string{"127.0.0.1"}, func(c *x509.Certificate) {
		for i := range 4_000 {
			c.DNSNames = append(c.DNSNames, fmt.Sprintf("a-name-of-no-use-%d.example", i))
		}
	}).TLS(t)
	if size := len(own.Certificate[0]); size < earlyBytesMax {
		t.Fatalf("the certificate has %d bytes only", size)
	}
	raw, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(testWait))
	conn := tls.Client(raw, &tls.Config{RootCAs: ours.Pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{own}})
	_, _ = conn.Write(newPreamble(PurposeMeet))
	if answer, err := io.ReadAll(conn); len(answer) > 0 || isTimeout(err) {
		t.Errorf("answered with %q, %v", answer, err)
	}
	waitUntil(t, "the log says why", func() bool { return log.contains("came before the dialer has proven") })
}
