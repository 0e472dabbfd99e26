package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
)

// dial opens a connection and sends first.
func dial(t *testing.T, addr, first string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, first); err != nil {
		t.Fatal(err)
	}
	return conn
}

// ended waits until the server has closed the connection.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	// It may be reset, because not everything sent was read.
	_, _ = io.Copy(io.Discard, conn)
}

const healthy = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// stats returns a request that needs a key.
func stats(headers ...string) string {
	return "GET /api/stats HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, "\r\n"), "\r\n")
}

// TestServer_Strangers ensures that connections without a valid key do not block others: when the bound is reached,
// the one that has waited longest is closed, whatever part of a request it has sent, and one with a key stays.
func TestServer_Strangers(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(allRoles()...), func(c *Config) { c.Connections = 4 })
	addr := listen(t, s)
	keyed := dial(t, addr, stats(with("operator")))
	reader := bufio.NewReader(keyed)
	if got := receive(t, reader); got.status != 200 {
		t.Fatalf("with a key: %+v", got)
	}
	probe := dial(t, addr, "")
	silent := dial(t, addr, "GET /api/stats HTTP/1.1\r\nHost: a\r\nX-")
	unknown := dial(t, addr, "")
	waitFor(t, func() bool { return s.core.port.Strangers() == 3 })
	for _, c := range []net.Conn{probe, unknown} { // they were answered, so they have waited less than the silent one
		if _, err := io.WriteString(c, healthy); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, bufio.NewReader(c)); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	for i, first := range []net.Conn{silent, probe, unknown} {
		key := []string{"operator", "worker", "worker"}[i] // one key may have half of them
		if got := receive(t, bufio.NewReader(dial(t, addr, stats(with(key))))); got.status != 200 {
			t.Errorf("one more, with a key: %+v", got)
		}
		ended(t, first)
	}
	if _, err := io.WriteString(keyed, stats(with("operator"))); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, reader); got.status != 200 {
		t.Errorf("the first one, with a key: %+v", got)
	}
	if n := s.core.port.Open(); n != 4 || s.core.port.Strangers() != 0 {
		t.Errorf("%d connections, %d of strangers, want 4 and 0", n, s.core.port.Strangers())
	}
	got := receive(t, bufio.NewReader(dial(t, addr, "")))
	if f := got.refused(t, wire.CodeOverloaded); f["reason"] != "connections" {
		t.Errorf("one more when all have shown a key: %v", f)
	}
}

// TestServer_StrangersPerAddress ensures that one address has a bounded number of strangers, and loses those that
// have waited longest, not others'.
func TestServer_StrangersPerAddress(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(testKey("operator")), func(c *Config) { c.ConnectionsPerAddress = 2 })
	addr := listen(t, s)
	first := dial(t, addr, "")
	for range 2 {
		dial(t, addr, "")
	}
	ended(t, first)
	if n := s.core.port.Strangers(); n != 2 {
		t.Errorf("%d strangers, want 2", n)
	}
}

// TestServer_StrangersBody ensures that a body above 32 KiB is refused because of its header if that has no valid
// key, and that no memory is held for it.
func TestServer_StrangersBody(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(unlimited(testKey("operator"))))
	addr := listen(t, s)
	head := func(framing string, headers ...string) string {
		return "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, framing, "\r\n"), "\r\n")
	}
	big := fmt.Sprintf("Content-Length: %d", door.StrangerBodyBytes+1)
	for name, request := range map[string]string{
		"no key":        head(big),
		"unknown key":   head(big, "X-API-Key: claimq_nobody"),
		"malformed key": head(big, "Authorization: Basic eDp5"),
		"chunked":       head("Transfer-Encoding: chunked") + "8001\r\n",
	} {
		got := raw(t, addr, request)
		got.refused(t, wire.CodeUnauthorized)
		if got.header["Www-Authenticate"] != door.Challenge {
			t.Errorf("%s: WWW-Authenticate %q", name, got.header["Www-Authenticate"])
		}
	}
	if n := s.core.port.BodyBytes(); n != 0 {
		t.Errorf("%d bytes of bodies are counted", n)
	}
	body := `{"params":"` + strings.Repeat("x", door.StrangerBodyBytes) + `"}`
	if got := raw(t, addr, head(fmt.Sprintf("Content-Length: %d", len(body)), with("operator"))+body); got.status != 201 {
		t.Errorf("with a key: %d %.200s", got.status, got.body)
	}
	if got := raw(t, addr, head("Transfer-Encoding: chunked", with("operator"))+fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)); got.status != 201 {
		t.Errorf("chunked, with a key: %d %.200s", got.status, got.body)
	}
}

// TestServer_ExpectedBody ensures that memory is allocated only if there is room: a body counts with the length in
// its header.
func TestServer_ExpectedBody(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, func(c *Config) {
		c.Limits.BodyBytes, c.BodiesBytes = 1<<20, door.BodyCopies*(1<<20+headerBytes)
	})
	addr := listen(t, s)
	head := "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n"
	first := dial(t, addr, head)
	waitFor(t, func() bool { return s.core.port.BodyBytes() == door.BodyCopies<<20 })
	if f := raw(t, addr, head).refused(t, wire.CodeOverloaded); f["reason"] != "bodies" {
		t.Errorf("another: %v", f)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() == 0 })
}

// TestServer_ExpectedBodyAskedFor ensures that a body still counts after the 100 Continue, which is not an answer,
// until it is answered.
func TestServer_ExpectedBodyAskedFor(t *testing.T) {
	t.Parallel()
	const length = 1 << 20
	s, _ := setup(t, func(c *Config) {
		c.Limits.BodyBytes, c.BodiesBytes = length, door.BodyCopies*(length+headerBytes)
	})
	addr := listen(t, s)
	head := func(more string) string {
		return "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\n" + more + "Content-Length: " + strconv.Itoa(length) + "\r\n\r\n"
	}
	conn := dial(t, addr, head("Expect: 100-continue\r\n"))
	from := bufio.NewReader(conn)
	if got := receive(t, from); got.status != 100 {
		t.Fatalf("%+v", got)
	}
	if n := s.core.port.BodyBytes(); n < door.BodyCopies*length {
		t.Errorf("%d bytes of bodies are counted, want %d", n, door.BodyCopies*length)
	}
	if f := raw(t, addr, head("")).refused(t, wire.CodeOverloaded); f["reason"] != "bodies" {
		t.Errorf("another: %v", f)
	}
	body := `{"params":"` + strings.Repeat("x", 1<<19) + `"}`
	if _, err := conn.Write([]byte(body + strings.Repeat(" ", length-len(body)))); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, from); got.status != 201 {
		t.Errorf("%d %.200s", got.status, got.body)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() == 0 })
}

// TestServer_ExpectedChunk ensures that a chunk counts with its announced length, because its memory is allocated
// before its bytes arrive.
func TestServer_ExpectedChunk(t *testing.T) {
	t.Parallel()
	const length = 1 << 20
	s, _ := setup(t, func(c *Config) {
		c.Limits.BodyBytes, c.BodiesBytes = length, door.BodyCopies*(length+headerBytes)
	})
	addr := listen(t, s)
	head := "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(length, 16) + "\r\n"
	conn := dial(t, addr, head)
	waitFor(t, func() bool { return s.core.port.BodyBytes() >= length })
	another := dial(t, addr, head)
	if f := receive(t, bufio.NewReader(another)).refused(t, wire.CodeOverloaded); f["reason"] != "bodies" {
		t.Errorf("another: %v", f)
	}
	if n := s.core.port.BodyBytes(); n >= 2*door.BodyCopies*length { // it is still open, and may continue
		t.Errorf("%d bytes of bodies are counted, those of the refused one too", n)
	}
	body := `{"params":"` + strings.Repeat("x", 1<<19) + `"}`
	if _, err := conn.Write([]byte(body + strings.Repeat(" ", length-len(body)) + "\r\n0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, bufio.NewReader(conn)); got.status != 201 {
		t.Errorf("%d %.200s", got.status, got.body)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() == 0 })
}

// TestServer_ctxOf ensures that a header leads to its own connection, whichever of several requests it belongs to.
func TestServer_ctxOf(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(unlimited(testKey("operator"))))
	addr := listen(t, s)
	for n := range 3 {
		conn := dial(t, addr, stats(with("operator")))
		if got := receive(t, bufio.NewReader(conn)); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		dial(t, addr, "")
		waitFor(t, func() bool { return s.core.port.Strangers() == n+1 })
	}
}

// TestServer_AmbiguousLength ensures that nothing is read as a second request after one with two contradicting
// lengths.
func TestServer_AmbiguousLength(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	for _, test := range []struct {
		framing string
		answers int
	}{
		{"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 1},
		{"content-length: 5\r\nTransfer-Encoding: chunked\r\n", 1},
		{"Transfer-Encoding: chunked\r\n", 2},
	} {
		conn := dial(t, addr, "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\n"+test.framing+"\r\n2\r\n{}\r\n0\r\n\r\n"+
			"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		all, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(all), "HTTP/1.1 "); n != test.answers {
			t.Errorf("%q: %d answers, want %d: %s", test.framing, n, test.answers, all)
		}
		if !strings.Contains(string(all), "Connection: close") {
			t.Errorf("%q: the answer does not say that the connection closes", test.framing)
		}
	}
}
