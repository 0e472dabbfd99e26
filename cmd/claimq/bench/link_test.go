package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answering returns a connection to an HTTP server. The server answers each request with the next of answers, sends
// its parts one by one, and then closes the connection. bodies gets the request bodies.
func answering(t *testing.T, answers ...[]string) (l *link, bodies chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	bodies = make(chan string, len(answers))
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		for _, parts := range answers {
			req, err := http.ReadRequest(r)
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			bodies <- req.Method + " " + req.URL.Path + " " + req.Host + " " + string(body)
			for _, part := range parts {
				if _, err := io.WriteString(conn, part); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	l = newLink("http://" + ln.Addr().String())
	t.Cleanup(l.close)
	return l, bodies
}

// An answer may come in any pieces, and one connection serves several requests.
func TestLink_Post(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 100<<10)
	l, bodies := answering(t,
		[]string{"HTTP/1.1 201 Created\r\nX-A: b\r\nContent-Length: 2\r\n\r\n{}"},
		[]string{"HTTP/1.1 40", "4 Not Found\r\nContent-Len", "gth: 102400\r\n\r", "\n", long[:7], long[7:]},
		[]string{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"})
	for _, c := range []struct {
		body, id string
		status   int
		want     string
	}{{"one", "7", 201, "{}"}, {strings.Repeat("x", 1<<20), "8", 404, long}, {"", "9", 200, ""}} {
		status, answer, err := l.post(time.Now(), []byte(c.body), pathTask, []byte(c.id), verbComplete)
		if err != nil || status != c.status || string(answer) != c.want {
			t.Errorf("got %d, %.80q, %v; want %d, %.80q", status, answer, err, c.status, c.want)
		}
		if got, want := <-bodies, "POST /api/tasks/"+c.id+"/complete "+l.addr+" "+c.body; got != want {
			t.Errorf("sent %.200q, want %.200q", got, want)
		}
	}
	if _, _, err := l.post(time.Now(), nil, pathClaim); err == nil {
		t.Error("no error on a connection that the server has closed")
	}
}

// Anything other than a valid answer is an error at once.
func TestLink_Post_notAnAnswer(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no length":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"length no number": "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"length too large": "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
		"more than one":    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc",
		"no status":        "HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n",
		"another protocol": "SSH-2.0\r\nContent-Length: 0\r\n\r\n",
	} {
		l, _ := answering(t, []string{text})
		if status, answer, err := l.post(time.Now(), []byte("{}"), pathSubmit); err == nil {
			t.Errorf("%s: got %d, %q", name, status, answer)
		}
	}
}

// An answer that does not match the request ends the run.
func TestConn_checksAnswers(t *testing.T) {
	t.Parallel()
	both := func(c *conn) error {
		c.batch = 2
		return c.completeAll([]held{{7, 1}, {8, 2}})
	}
	result := func(id int) string {
		return fmt.Sprintf(`{"success":true,"task":{"id":%d,"status":"completed"}}`, id)
	}
	results := func(failed int, all ...string) string {
		return fmt.Sprintf(`{"success":true,"results":[%s],"failed":%d}`, strings.Join(all, ","), failed)
	}
	for name, c := range map[string]struct {
		body string
		call func(c *conn) error
		ok   bool
	}{
		"complete two":               {results(0, result(7), result(8)), both, true},
		"complete two, one refused":  {results(1, result(7), `{"success":false,"task":{"id":8,"status":"completed"}}`), both, false},
		"complete two, one answered": {results(0, result(7)), both, false},
		"complete two, another":      {results(0, result(7), result(9)), both, false},
		"complete two, still held":   {results(0, result(7), `{"success":true,"task":{"id":8,"status":"claimed"}}`), both, false},
		"submit":                     {`{"success":true,"task":{"id":7}}`, func(c *conn) error { return c.submit(1) }, true},
		"submit without id":          {`{"success":true}`, func(c *conn) error { return c.submit(1) }, false},
		"submit refused":             {`{"success":false,"id":7}`, func(c *conn) error { return c.submit(1) }, false},
		"complete":                   {`{"success":true,"task":{"id":7,"status":"completed"}}`, func(c *conn) error { return c.complete(held{7, 1}) }, true},
		"complete, still held":       {`{"success":true,"task":{"id":7,"status":"claimed"}}`, func(c *conn) error { return c.complete(held{7, 1}) }, false},
		"complete, another task":     {`{"success":true,"task":{"id":8,"status":"completed"}}`, func(c *conn) error { return c.complete(held{7, 1}) }, false},
		"claim":                      {`{"success":true,"task":{"id":7,"claim_token":3}}`, func(c *conn) error { _, err := c.claim(1); return err }, true},
		"claim without token":        {`{"success":true,"task":{"id":7}}`, func(c *conn) error { _, err := c.claim(1); return err }, false},
	} {
		l, _ := answering(t, []string{fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(c.body), c.body)})
		conn := newConn("http://"+l.addr, "t", 1, []byte(`""`), Config{Batch: 1})
		t.Cleanup(conn.link.close)
		if err := c.call(conn); (err == nil) != c.ok {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
