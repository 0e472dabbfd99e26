package api

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/testwait"
)

// untilClosed sends bytes over a new connection and returns all that comes until the server
// closes it.
func untilClosed(t *testing.T, addr, sent string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testwait.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("%q: after %q the connection stays open: %v", sent, got, err)
	}
	return string(got)
}

// Connection is a list of words in any case, over several lines.
func TestServer_ConnectionClose(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	for _, field := range []string{
		"Connection: close", "Connection: Close", "connection: CLOSE", "Connection: TE, close", "Connection: keep-alive , Close,TE", "Connection:\tcLose\t",
		"Connection: close\r\nConnection: TE", "Connection: TE\r\nConnection: close", "Connection: TE\r\nCONNECTION: x,Close",
	} {
		for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
			got := untilClosed(t, addr, "GET /healthz "+proto+"\r\nHost: localhost\r\n"+field+"\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("%s, %q: %s", proto, field, got)
			}
		}
	}
	got := untilClosed(t, addr, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: closed, x-close\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Close\r\n\r\n")
	if n := strings.Count(got, "HTTP/1.1 200 "); n != 2 {
		t.Errorf("behind words that are not close there are %d answers, want 2: %s", n, got)
	}
}

// To a client of HTTP/1.0 no answer has chunks: a stream is as it is, and ends with the connection.
func TestServer_NoChunksForHTTP10(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	submitOne(t, s, `{"task_type":"a","params":1}`)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testwait.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /api/events?after=0 HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for !strings.Contains(got.String(), "id: 1.1\n\n") {
		if _, err := io.CopyN(&got, conn, 1); err != nil {
			t.Fatalf("after %s: %v", &got, err)
		}
	}
	node.Mu.Lock()
	newest := node.Machine.NewestEvent()
	node.Mu.Unlock()
	if newest.Sub != 1 {
		t.Fatalf("the newest event is %v", newest)
	}
	go s.host.Drain()
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	head, body, _ := strings.Cut(got.String()+string(rest), "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") || !strings.Contains(head, "\r\nConnection: close") || strings.Contains(strings.ToLower(head), "transfer-encoding") || !strings.Contains(head, "X-Content-Type-Options") {
		t.Errorf("the head is %s", head)
	}
	if !strings.HasPrefix(body, "retry: 1000\nid: 0\n\ndata: {") || strings.Contains(body, "\r\n") {
		t.Errorf("the body is %q", body)
	}
}

// No 100 Continue comes before a refusal that the head alone decides.
func TestServer_NoContinueBeforeARefusal(t *testing.T) {
	t.Parallel()
	leader, _, _ := setupKeys(t, allRoles()...)
	addr := listen(t, leader)
	for _, c := range []struct{ fields, want string }{
		{with("producer") + "\r\nContent-Length: 99999999", "HTTP/1.1 413 "},
		{"Content-Length: 29", "HTTP/1.1 401 "},
		{"X-API-Key: claimq_nobody\r\nContent-Length: 29", "HTTP/1.1 401 "},
		{"X-API-Key: claimq_nobody\r\nTransfer-Encoding: chunked", "HTTP/1.1 401 "},
	} {
		got := untilClosed(t, addr, "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"+c.fields+"\r\n\r\n")
		if !strings.HasPrefix(got, c.want) || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%q: %s", c.fields, got)
		}
	}
	const body = `{"task_type":"t","params":{}}`
	got := untilClosed(t, addr, fmt.Sprintf("POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n%s\r\nContent-Length: %d\r\n\r\n%s", with("producer"), len(body), body))
	if !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 ") {
		t.Errorf("one that is answered: %s", got)
	}
}

// What stands behind a chunked body is no header, at the node that it reaches and through a follower.
func TestServer_Trailers(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, allRoles()...)
	const request = "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n%s\r\n1d\r\n{\"task_type\":\"t\",\"params\":{}}\r\n0\r\n%s\r\n\r\n"
	for name, s := range map[string]*Server{"the leader": leader, "a follower": follower} {
		addr := listen(t, s)
		for _, c := range []struct{ head, trailer, want string }{
			{"", with("producer"), "HTTP/1.1 401 "},
			{"X-Request-ID: a\r\nTrailer: X-API-Key\r\n", with("producer"), "HTTP/1.1 401 "},
			{"", "Authorization: Bearer " + keyText("producer"), "HTTP/1.1 400 "}, // which the HTTP server refuses by itself,
			{with("reader") + "\r\n", with("producer"), "HTTP/1.1 403 "},
			{with("producer") + "\r\n", with("reader"), "HTTP/1.1 201 "},
			{with("producer") + "\r\n", "Sec-Fetch-Site: cross-site", "HTTP/1.1 201 "},
			{with("producer") + "\r\n", "Origin: http://elsewhere", "HTTP/1.1 201 "},
			{with("producer") + "\r\n", "X-Claimq-Min-Index: x", "HTTP/1.1 201 "},
		} {
			if got := untilClosed(t, addr, fmt.Sprintf(request, c.head, c.trailer)); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, %q behind %q: %s", name, c.trailer, c.head, got)
			}
		}
	}
}
