package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/testwait"
)

// untilClosed sends bytes over a new connection and returns everything received until the server closes it.
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

// Connection is a list of words in any case, possibly on several lines.
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

// Answers to a client of HTTP/1.0 have no chunks: a stream is sent plain, and ends with the connection.
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
	go s.core.drain()
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

// A request that is refused because of its header gets no 100 Continue, and no part of its body is read as another
// request.
func TestServer_NoContinueBeforeARefusal(t *testing.T) {
	t.Parallel()
	leader, _, _ := setupKeys(t, append(allRoles(), ofTypes(testKey("operator", "typed"), "a"))...)
	addr := listen(t, leader)
	const submit = "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\n"
	refuses := func(name, request, want, code string) {
		t.Helper()
		for _, length := range []string{"Content-Length: 29", "Transfer-Encoding: chunked"} {
			got := untilClosed(t, addr, request+"Expect: 100-continue\r\n"+length+"\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+want) || strings.Count(got, "HTTP/1.1 ") != 1 || !strings.Contains(got, `"code":"`+code+`"`) || !strings.Contains(got, "\r\nConnection: close") {
				t.Fatalf("%s, %s: %s", name, length, got) // each waits until the body's time is over
			}
		}
	}
	refuses("no key", submit, "401", "unauthorized")
	refuses("an unknown key", submit+"X-API-Key: claimq_nobody\r\n", "401", "unauthorized")
	key := with("producer") + "\r\n"
	refuses("a path", "POST /api/nothing HTTP/1.1\r\nHost: localhost\r\n"+key, "404", "not_found")
	refuses("a method", "PUT /api/tasks HTTP/1.1\r\nHost: localhost\r\n"+key, "405", "method_not_allowed")
	refuses("an id", "POST /api/tasks/0/cancel HTTP/1.1\r\nHost: localhost\r\n"+key, "400", "invalid_request")
	refuses("a parameter", "POST /api/tasks?x=1 HTTP/1.1\r\nHost: localhost\r\n"+key, "400", "invalid_request")
	refuses("a role", submit+with("reader")+"\r\n", "403", "forbidden")
	refuses("a key of some types", "POST /api/snapshots HTTP/1.1\r\nHost: localhost\r\n"+with("typed")+"\r\n", "403", "forbidden")
	refuses("an origin", submit+"Origin: http://elsewhere\r\n"+key, "403", "forbidden")
	refuses("a page of another site", submit+"Sec-Fetch-Site: cross-site\r\n"+key, "403", "forbidden")
	got := untilClosed(t, addr, submit+"Expect: 100-continue\r\nContent-Length: 99999999\r\n"+key+"\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") || strings.Count(got, "HTTP/1.1 ") != 1 {
		t.Errorf("a length: %s", got)
	}
	open, _ := setup(t)
	addr = listen(t, open)
	refuses("a host", "POST /api/tasks HTTP/1.1\r\nHost: evil.example\r\n", "403", "forbidden")
	addr = listen(t, leader)
	const body = `{"task_type":"t","params":{}}`
	got = untilClosed(t, addr, fmt.Sprintf("POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n%s\r\nContent-Length: %d\r\n\r\n%s", with("producer"), len(body), body))
	if !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 ") {
		t.Errorf("one that is answered: %s", got)
	}
	if got := untilClosed(t, addr, "POST /ui/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"); !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 ") {
		t.Errorf("one that needs no key: %s", got)
	}
	conn := dial(t, addr, stats(with("operator")))
	from := bufio.NewReader(conn)
	receive(t, from)
	leader.Drain()
	if _, err := io.WriteString(conn, submit+"Expect: 100-continue\r\nContent-Length: 29\r\n"+key+"\r\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(from)
	if err != nil || !strings.HasPrefix(string(rest), "HTTP/1.1 503 ") || strings.Count(string(rest), "HTTP/1.1 ") != 1 {
		t.Errorf("a node that drains: %v, %s", err, rest)
	}
}

// The trailer of a chunked body is never used as a header, neither at the first node nor through a follower.
func TestServer_Trailers(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, allRoles()...)
	const request = "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n%s\r\n1d\r\n{\"task_type\":\"t\",\"params\":{}}\r\n0\r\n%s\r\n\r\n"
	for name, s := range map[string]*Server{"the leader": leader, "a follower": follower} {
		addr := listen(t, s)
		for _, c := range []struct{ head, trailer, want string }{
			{"", with("producer"), "HTTP/1.1 401 "},
			{"X-Request-ID: a\r\nTrailer: X-API-Key\r\n", with("producer"), "HTTP/1.1 401 "},
			{"", "Authorization: Bearer " + keyText("producer"), "HTTP/1.1 400 "}, // the HTTP server itself refuses this,
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
