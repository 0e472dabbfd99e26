package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// listen serves s on loopback until the test ends and returns its address.
func listen(t *testing.T, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if os.Getenv(serversOverTLS) != "" {
		_, client := sharedTLS(t)
		addr = overTLS(t, addr, client)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testwait.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return addr
}

// raw sends bytes over a new connection and returns the answer to them.
func raw(t *testing.T, addr, request string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testwait.Patience)); err != nil {
		t.Fatal(err)
	}
	// Reads at once, because a refusal may come before everything is sent. The server reads on only for a moment,
	// which may be too short for a busy machine to send a large body.
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, request) // if it matters, there is no answer
	}()
	a := receive(t, bufio.NewReader(conn))
	_ = conn.Close()
	<-sent
	line, rest, _ := strings.Cut(request, "\r\n")
	method, target, _ := strings.Cut(line, " ")
	target, _, _ = strings.Cut(target, " ")
	head, body, _ := strings.Cut(rest, "\r\n\r\n")
	if strings.Contains(head, "chunked") {
		body = "" // the body is between the sizes of the chunks
	}
	if a.status == http.StatusContinue {
		return a
	}
	described(t, method, strings.TrimPrefix(target, "http://localhost"), body, a)
	return a
}

func receive(t *testing.T, r *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read body: %v", err)
	}
	a := answer{status: resp.StatusCode, header: make(map[string]string), body: string(body)}
	for name := range resp.Header {
		a.header[name] = resp.Header.Get(name)
	}
	return a
}

// TestServer_Malformed sends invalid HTTP; the answer is JSON all the same.
func TestServer_Malformed(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	for name, c := range map[string]struct {
		request string
		code    wire.Code
	}{
		"garbage":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", wire.CodeInvalidRequest},
		"no version":          {"GET /api/stats\r\nHost: localhost\r\n\r\n", wire.CodeInvalidRequest},
		"a bad header":        {"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n", wire.CodeInvalidRequest},
		"no host":             {"GET /api/stats HTTP/1.1\r\n\r\n", wire.CodeInvalidRequest},
		"a bad length":        {"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", wire.CodeInvalidRequest},
		"two lengths":         {"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", wire.CodeInvalidRequest},
		"bad chunks":          {"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", wire.CodeInvalidRequest},
		"large headers":       {"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", wire.CodeHeadersTooLarge},
		"a long query":        {"GET /api/tasks?x=" + strings.Repeat("x", 40<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", wire.CodeHeadersTooLarge},
		"a large body":        {"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n" + strings.Repeat("x", 9_000_000), wire.CodePayloadTooLarge},
		"a large chunked one": {"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n895440\r\n" + strings.Repeat("x", 0x895440) + "\r\n0\r\n\r\n", wire.CodePayloadTooLarge},
		"multipart":           {"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\n--x", wire.CodeInvalidRequest},
		"an evil host":        {"GET http://localhost/api/stats HTTP/1.1\r\nHost: evil.example\r\n\r\n", wire.CodeForbidden},
		"a CONNECT":           {"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", wire.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := raw(t, addr, c.request)
			got.refused(t, c.code)
			if server, ok := got.header["Server"]; ok {
				t.Errorf("Server: %s", server)
			}
		})
	}
}

// A client that sends everything before it reads gets its answer, whatever was wrong with the beginning: a
// connection that is closed while something is unread is reset, and proxies then lose the answer.
func TestServer_RefusedWhileSending(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	rest := strings.Repeat("x", 1<<20) + "\r\n\r\n"
	for name, start := range map[string]string{
		"garbage":       "\x16\x03\x01",
		"no version":    "GET /api/stats\r\nHost: localhost\r\n\r\n",
		"a bad length":  "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
		"large headers": "GET /api/stats HTTP/1.1\r\nHost: localhost\r\nX: ",
		"a long query":  "GET /api/tasks?x=",
		"bad chunks":    "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dialServer(t, addr)
			if _, err := io.WriteString(conn, start+rest); err != nil {
				t.Errorf("send: %v", err)
			}
			if a := receive(t, bufio.NewReader(conn)); a.status < 400 || a.status > 499 {
				t.Errorf("%d: %s", a.status, a.body)
			}
		})
	}
}

// TestServer_Protocol sends HTTP as clients do.
func TestServer_Protocol(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	const host = " HTTP/1.1\r\nHost: localhost\r\n"
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"chunked", "POST /api/tasks" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"par\r\n7\r\nams\":1}\r\n0\r\n\r\n", 201},
		{"curl's form type", "POST /api/tasks" + host + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 12\r\n\r\n{\"params\":1}", 201},
		{"multipart in name only", "POST /api/tasks" + host + "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 12\r\n\r\n{\"params\":1}", 201},
		{"expect continue", "POST /api/tasks" + host + "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n{\"params\":1}", 100},
		{"absolute form", "GET http://localhost/api/tasks/1" + host + "\r\n", 200},
		{"a header in lower case", "GET /api/tasks/1" + " HTTP/1.1\r\nhost: localhost\r\nx-request-id: r\r\n\r\n", 200},
		{"http 1.0", "GET /api/tasks/1 HTTP/1.0\r\nHost: localhost\r\n\r\n", 200},
		{"a dot segment is no path of ours", "GET /api/x/../tasks/1" + host + "\r\n", 404},
	} {
		if got := raw(t, addr, c.request); got.status != c.status {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
	resp, err := http.Head("http://" + addr + "/api/tasks/1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength < 100 || resp.Header.Get("X-Claimq-Index") == "" {
		t.Errorf("HEAD: %d, length %d", resp.StatusCode, resp.ContentLength)
	}
}

// TestServer_KeepAlive checks that a refusal keeps the connection open, and that pipelined requests get their own
// answers.
func TestServer_KeepAlive(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	conn, err := net.Dial("tcp", listen(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	var sent strings.Builder
	for i := range 4 {
		fmt.Fprintf(&sent, "GET /api/tasks/%d HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: r%d\r\n\r\n", i, i)
	}
	if _, err := io.WriteString(conn, sent.String()); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		got := receive(t, r)
		described(t, "GET", fmt.Sprintf("/api/tasks/%d", i), "", got)
		if got.header["X-Request-Id"] != fmt.Sprintf("r%d", i) {
			t.Errorf("answer %d: %+v", i, got)
		}
	}
}

// TestServer_Connections checks that a connection over the bound is told so.
func TestServer_Connections(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, func(c *Config) { c.Connections = 1 })
	addr := listen(t, s)
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(first)
	const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	if _, err := io.WriteString(first, request); err != nil {
		t.Fatal(err)
	}
	got := receive(t, r)
	described(t, "GET", "/healthz", "", got)
	if got.status != 200 {
		t.Fatalf("first: %+v", got)
	}
	second, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	got = receive(t, bufio.NewReader(second))
	described(t, "", "", "", got) // its request was not read
	if f := got.refused(t, wire.CodeOverloaded); got.header["Retry-After"] != "1" || f["error"] != "The server has 1 connections open, its limit" || f["reason"] != "connections" {
		t.Errorf("second: %+v", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.Open() == 0 })
	if got := raw(t, addr, request); got.status != 200 {
		t.Errorf("after the first has gone: %+v", got)
	}
}

// TestServer_ShutdownFinishes checks that a request in flight is answered while the server stops.
func TestServer_ShutdownFinishes(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	began, finish := make(chan struct{}), make(chan struct{})
	node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		close(began)
		<-finish
		return node.Apply(cmd)
	}
	addr := listen(t, s)
	got := make(chan answer, 1)
	go func() {
		got <- raw(t, addr, "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n{\"params\":1}")
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	waitFor(t, s.core.draining.Load)
	close(finish)
	if a := <-got; a.status != 201 {
		t.Errorf("in flight: %d %s", a.status, a.body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown again: %v", err)
	}
}
