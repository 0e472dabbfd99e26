package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/claimq/claimq/jepsen/procs"
)

// crowd is many connections to nodes, each with somebody who asks and reads. It speaks
// HTTP by itself, with little work for each: it shares the processors with the nodes.
type crowd struct {
	conns   []net.Conn
	reading sync.WaitGroup
}

// join connects to the node, sends a request, as send does, and lets read read what is
// answered.
func (w *crowd) join(n *procs.Node, line, rest string, read func(net.Conn, *bufio.Reader)) error {
	conn, err := net.Dial("tcp", n.HTTPAddr)
	if err != nil {
		return err
	}
	w.conns = append(w.conns, conn)
	if err := send(conn, n, line, rest); err != nil {
		return err
	}
	w.reading.Go(func() { read(conn, bufio.NewReader(conn)) })
	return nil
}

// send sends the node a request: its method and path, and what follows the first headers.
func send(conn net.Conn, n *procs.Node, line, rest string) error {
	_, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\n%s", line, n.HTTPAddr, rest)
	return err
}

// leave closes the first connections.
func (w *crowd) leave(count int) {
	for _, conn := range w.conns[:count] {
		_ = conn.Close() // whatever it says, it is closed
	}
	w.conns = w.conns[count:]
}

// close closes all, and waits for those who read.
func (w *crowd) close() {
	w.leave(len(w.conns))
	w.reading.Wait()
}

// post sends a body to the node over a connection that is kept.
func post(n *procs.Node, path, body string) error {
	resp, err := http.Post(n.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	return succeeded(resp)
}

// succeeded reads an answer to its end, which must be a success.
func succeeded(resp *http.Response) error {
	_, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // all of it was read
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}
