package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// cluster answers requests by a script.
type cluster struct {
	script script
	nodes  []net.Listener
	dead   string // an address that takes no connection

	mu   sync.Mutex // guards all below
	seen []seen
	held []net.Conn
}

// seen is a received request.
type seen struct {
	node            int
	method, target  string
	redirect        bool
	body, requestID string
}

func start(s script) (*cluster, error) {
	c := &cluster{script: s}
	for i := range s.Nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, l)
		go c.serve(i, l)
	}
	port, err := reserve()
	if err != nil {
		return nil, err
	}
	c.dead = "http://127.0.0.1:" + strconv.Itoa(port)
	return c, nil
}

// reserve returns a port that refuses connections for as long as this process lives: it is
// bound, so that no other server gets it, and nothing listens.
func reserve() (port int, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}

func (c *cluster) plan() plan {
	p := plan{Call: c.script.Call, Calls: max(c.script.Calls, 1), TimeoutMS: c.script.TimeoutMS, Outcome: c.script.Outcome, Code: c.script.Code}
	for i := range c.nodes {
		if c.script.Endpoints == 0 || i < c.script.Endpoints {
			p.Endpoints = append(p.Endpoints, c.url(i))
		}
	}
	return p
}

func (c *cluster) url(node int) string { return "http://" + c.nodes[node].Addr().String() }

func (c *cluster) serve(node int, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go c.talk(node, conn)
	}
}

// talk answers the requests of one connection.
func (c *cluster) talk(node int, conn net.Conn) {
	c.mu.Lock()
	c.held = append(c.held, conn)
	c.mu.Unlock()
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			break
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			break
		}
		answer := c.next(seen{node, req.Method, req.RequestURI, req.Header.Get("X-Claimq-Redirect") == "1", string(body), req.Header.Get("X-Request-Id")})
		if !c.answer(conn, req, answer) {
			break
		}
	}
	_ = conn.Close() // what it had to say is said
}

// next notes a request and returns its answer.
func (c *cluster) next(s seen) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, s)
	return c.script.answer(len(c.seen) - 1)
}

// answer writes one answer, and reports whether the connection goes on.
func (c *cluster) answer(conn net.Conn, req *http.Request, answer string) bool {
	kind, argument, _ := strings.Cut(answer, " ")
	success := `{"success":true,"task":{"id":1,"status":"pending"},"created":true,"deleted":1,"results":[{"success":true,"tasks":[]}]}`
	write := func(parts ...string) bool {
		_, err := io.WriteString(conn, strings.Join(parts, ""))
		return err == nil
	}
	whole := func(status int, headers, body string) bool {
		return write(head(status), headers, "Content-Length: ", strconv.Itoa(len(body)), "\r\n\r\n", body)
	}
	number, _ := strconv.Atoi(argument) // of those that have one
	switch kind {
	case "ok":
		return whole(200, "", success)
	case "ok_chunked":
		return write(head(200), "Transfer-Encoding: chunked\r\n\r\n", chunk(success[:10]), chunk(success[10:]), "0\r\n\r\n")
	case "ok_slowly":
		if !write("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", head(200)) {
			return false
		}
		for _, piece := range []string{"Content-Len", fmt.Sprintf("gth: %d\r\n", len(success)), "\r\n", success[:1], success[1:]} {
			if !write(piece) {
				return false
			}
		}
		return true
	case "ok_until_close":
		write(head(200), "Connection: close\r\n\r\n", success)
		return false
	case "redirect":
		to := c.dead
		if argument != "dead" {
			to = c.url(number)
		}
		return whole(307, "Location: "+to+req.RequestURI+"\r\n", "")
	case "cut":
		return false
	case "cut_after_headers":
		write(head(200), "Content-Length: 100\r\n\r\n")
		return false
	case "half_body":
		write(head(200), "Content-Length: ", strconv.Itoa(len(success)), "\r\n\r\n", success[:len(success)/2])
		return false
	case "half_chunks":
		write(head(200), "Transfer-Encoding: chunked\r\n\r\n", chunk(success[:10]), "40\r\nhalf")
		return false
	case "silence":
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
		return false
	case "page":
		return whole(number, "Content-Type: text/html\r\n", "<html>a proxy</html>")
	case "json":
		return whole(number, "", `{"error":"not ours","code":"E404","message":"a proxy"}`)
	case "overloaded", "no_leader":
		return whole(503, "Retry-After: "+argument+"\r\n", refusal(kind))
	case "unauthorized":
		return whole(401, "", refusal(kind))
	case "outcome_unknown":
		return whole(504, "", refusal(kind))
	case "task_not_found":
		return whole(404, "", refusal(kind))
	}
	return whole(400, "", refusal(kind))
}

func head(status int) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func refusal(code string) string {
	return fmt.Sprintf(`{"success":false,"error":"refused","code":%q,"message":"by the script","request_id":"r1","field":"task_type"}`, code)
}

// stop ends all connections, and returns what was wrong with the requests.
func (c *cluster) stop() error {
	for _, l := range c.nodes {
		_ = l.Close() // it is not used any more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.held {
		_ = conn.Close() // as above
	}
	var asked []int
	var errs []error
	bodies, ids := map[string]bool{}, map[string]bool{}
	for i, s := range c.seen {
		if strings.HasPrefix(c.script.answer(i), "redirect") && !s.redirect {
			errs = append(errs, fmt.Errorf("request %d (%s %s) does not ask for redirects, but is to be redirected", i, s.method, s.target))
		}
		asked = append(asked, s.node)
		bodies[s.body] = true
		ids[s.requestID] = true
		if s.method != "GET" && s.method != "DELETE" && !strings.HasPrefix(s.body, "{") {
			errs = append(errs, fmt.Errorf("%s %s has the body %q", s.method, s.target, s.body))
		}
	}
	if c.script.Asked != nil && !slices.Equal(asked, c.script.Asked) {
		errs = append(errs, fmt.Errorf("the nodes asked are %v, want %v", asked, c.script.Asked))
	}
	calls := max(c.script.Calls, 1)
	if len(bodies) > calls || len(ids) > calls {
		errs = append(errs, fmt.Errorf("%d calls sent %d bodies and %d request ids: a repeat is the same request", calls, len(bodies), len(ids)))
	}
	return errors.Join(errs...)
}
