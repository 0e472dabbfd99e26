package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// lookupTimeout bounds finding the addresses of a node's name: a name server that does
	// not answer is left after 5 s, for each domain that the name is looked for in.
	lookupTimeout = 20 * time.Second
	// connectTimeout bounds making a connection to the addresses of a node, and separately
	// its TLS handshake.
	connectTimeout = 3 * time.Second
	// connectNext is how much later the next address of a name is tried as well.
	connectNext = 250 * time.Millisecond
	// addressesMax bounds how many addresses of a name are tried.
	addressesMax = 8
	// ownDialTimeout bounds Config.Dial, which does both.
	ownDialTimeout = 8 * time.Second
)

// keepAlive finds a machine that is gone, without power or behind a cable that was pulled, within
// 8 s where nothing is sent to it: on connections that wait, and on idle ones.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 2}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport makes a transport. header is how long an answer may take to begin, 0: the try's time.
func newTransport(cfg Config, secure *tls.Config, conns int, header time.Duration) *http.Transport {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment, // never for loopback
		DialContext:           dialNode,
		TLSHandshakeTimeout:   connectTimeout,
		MaxConnsPerHost:       conns,
		MaxIdleConnsPerHost:   conns,
		IdleConnTimeout:       connIdle,
		ResponseHeaderTimeout: header,
		TLSClientConfig:       secure.Clone(),
	}
	if t.TLSClientConfig != nil {
		// One that offers h2, as one that served others does, would be answered in it.
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	if cfg.Dial != nil {
		t.Proxy, t.DialContext = nil, bounded(cfg.Dial)
	}
	return t
}

// bounded is a program's own dial, left alone when it takes too long. A connection that it makes
// after that is closed.
func bounded(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, ownDialTimeout, fmt.Errorf("Config.Dial took over %v", ownDialTimeout))
		made := make(chan dialed, 1)
		go func() {
			defer cancel()
			conn, err := dial(ctx, network, address)
			made <- dialed{conn, err}
		}()
		select {
		case d := <-made:
			return d.conn, d.err
		case <-ctx.Done():
			go closeLate(made, 1)
			return nil, fmt.Errorf("dial %s: %w", address, context.Cause(ctx))
		}
	}
}

// dialed is what came of making a connection.
type dialed struct {
	conn net.Conn
	err  error
}

// closeLate closes what comes of n dials that nobody waits for any more.
func closeLate(made <-chan dialed, n int) {
	for range n {
		if d := <-made; d.conn != nil {
			_ = d.conn.Close() // nothing was sent
		}
	}
}

// dialNode makes a connection to the first address of a node that takes one. Finding the addresses
// has a time of its own, so that a name server that does not answer leaves some to connect in.
func dialNode(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, cancel := context.WithTimeout(ctx, lookupTimeout)
	addresses, err := net.DefaultResolver.LookupHost(found, host) // an IP address is its own
	cancel()
	if err != nil {
		return nil, err
	}
	addresses = addresses[:min(len(addresses), addressesMax)]
	d := net.Dialer{KeepAliveConfig: keepAlive}
	ctx, cancel = context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return dialFirst(ctx, len(addresses), func(i int) (net.Conn, error) {
		return d.DialContext(ctx, network, net.JoinHostPort(addresses[i], port))
	})
}

// dialFirst makes n dials, each when the one before has failed or is slow, until one succeeds. It
// ends when all have failed.
func dialFirst(ctx context.Context, n int, dial func(i int) (net.Conn, error)) (net.Conn, error) {
	made := make(chan dialed, n)
	var errs []error
	var slow <-chan time.Time
	for begun := 0; ; {
		if begun < n && (slow == nil || len(errs) == begun) {
			i := begun
			go func() {
				conn, err := dial(i)
				made <- dialed{conn, err}
			}()
			begun++
			slow = time.After(connectNext)
		}
		select {
		case d := <-made:
			if d.err == nil {
				go closeLate(made, begun-len(errs)-1)
				return d.conn, nil
			}
			if errs = append(errs, d.err); len(errs) == n {
				return nil, errors.Join(errs...)
			}
		case <-slow:
			slow = nil
		case <-ctx.Done():
			go closeLate(made, begun-len(errs))
			return nil, fmt.Errorf("connect: %w", errors.Join(append(errs, ctx.Err())...))
		}
	}
}

// distrust closes the connections that are not in use. One that was used before gave no answer: the
// machine behind it may be gone without a word, and then so are the others.
func (c *Client) distrust() {
	c.http.CloseIdleConnections()
	c.waiting.CloseIdleConnections()
}

// isSilence reports whether err, of a try on a connection, is that nothing came in its time.
func isSilence(err error) bool {
	var late interface{ Timeout() bool }
	return errors.As(err, &late) && late.Timeout()
}
