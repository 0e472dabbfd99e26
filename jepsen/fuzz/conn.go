package fuzz

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// answerTimeout bounds the answer to a well-formed request.
	answerTimeout = 30 * time.Second
	// oddTimeout bounds the wait for an answer that need not come.
	oddTimeout = 250 * time.Millisecond
	// answerBytesMax bounds the part of an answer's body that is read.
	answerBytesMax = 64 << 20
)

// answer is the response to a request.
type answer struct {
	status int // 0: nothing, or nothing whole
	header http.Header
	body   []byte
	err    error // why there is no answer
	stream bool  // its body does not end by itself, and was not read to the end
	closes bool  // the connection closes after it
}

// conn is a connection to one node, reopened when necessary. It is for one goroutine.
type conn struct {
	addr string
	tls  *tls.Config // nil: without TLS
	c    net.Conn    // nil: not open
	r    *bufio.Reader
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// overTLS returns the connection with TLS over it, before the handshake.
func overTLS(c net.Conn, config *tls.Config) *tls.Conn {
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(c.RemoteAddr().String())
	return tls.Client(c, config)
}

func (c *conn) close() {
	if c.c != nil {
		_ = c.c.Close()
		c.c = nil
	}
}

// exchange sends the request and reads an answer. A node may close a connection after an
// answer that says so, but nowhere else, because a client would not know whether its next
// request was done.
func (c *conn) exchange(ctx context.Context, req *request) answer {
	if c.c == nil {
		opened, err := dialTCP(ctx, c.addr)
		if err != nil {
			return answer{err: fmt.Errorf("dial: %w", err)}
		}
		c.c = opened
		if c.tls != nil {
			over := overTLS(opened, c.tls)
			if err := over.HandshakeContext(ctx); err != nil {
				c.close()
				return answer{err: fmt.Errorf("dial: %w", err)}
			}
			c.c = over
		}
		c.r = bufio.NewReader(c.c)
	}
	timeout := answerTimeout
	if !req.sane {
		timeout = oddTimeout
	}
	if err := c.c.SetDeadline(time.Now().Add(timeout)); err != nil {
		c.close()
		return answer{err: err}
	}
	_, errWrite := c.c.Write(req.raw) // it may be refused before all of it was read
	a := c.read(req)
	if a.err != nil {
		a.err = errors.Join(a.err, errWrite)
	}
	if a.err != nil || errWrite != nil || !req.sane || a.stream || a.closes {
		c.close()
	}
	return a
}

// read reads the answer to the request.
func (c *conn) read(req *request) answer {
	var resp *http.Response
	for {
		var err error
		if resp, err = http.ReadResponse(c.r, &http.Request{Method: req.method}); err != nil {
			return answer{err: err}
		}
		if resp.StatusCode != http.StatusContinue {
			break
		}
	}
	a := answer{status: resp.StatusCode, header: resp.Header, closes: resp.Close}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a.stream = true
		_ = c.c.SetReadDeadline(time.Now().Add(oddTimeout))
	}
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	_ = resp.Body.Close()
	if a.stream && errors.Is(a.err, os.ErrDeadlineExceeded) {
		a.err = nil
	}
	return a
}
