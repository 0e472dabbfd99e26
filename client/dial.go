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
	// lookupTimeout bounds resolving a node's name. A name server that does not answer takes 5 s for each search
	// domain.
	lookupTimeout = 20 * time.Second
	// connectTimeout bounds connecting to a node's addresses and, separately, its TLS handshake.
	connectTimeout = 3 * time.Second
	// connectNext is the delay before the next address of a name is tried in parallel.
	connectNext = 250 * time.Millisecond
	// addressesMax bounds how many addresses of a name are tried.
	addressesMax = 8
	// ownDialTimeout bounds Config.Dial, which both resolves and connects.
	ownDialTimeout = 8 * time.Second
)

// keepAlive detects within 8 s that a machine is gone, without power or unplugged, on connections that are idle or
// wait for an answer.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 2}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport makes a transport. header bounds how long an answer may take to begin; 0: only the try's time does.
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
		// A config that was used elsewhere may offer h2, and the server would then choose it.
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	if cfg.Dial != nil {
		t.Proxy, t.DialContext = nil, bounded(cfg.Dial)
	}
	return t
}

// bounded wraps Config.Dial so that it is abandoned when it takes too long. A connection that it makes later is
// closed.
func bounded(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, ownDialTimeout, fmt.Errorf("Config.Dial took over %v", ownDialTimeout))
		defer cancel() // not when the dial is done: the select would see both and might leave a good connection
		made := make(chan dialed, 1)
		go func() {
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

// dialed is the result of a dial.
type dialed struct {
	conn net.Conn
	err  error
}

// closeLate closes the connections of n dials that are no longer waited for.
func closeLate(made <-chan dialed, n int) {
	for range n {
		if d := <-made; d.conn != nil {
			_ = d.conn.Close() // nothing was sent
		}
	}
}

// dialNode connects to the first address of a node that accepts. Resolving has its own timeout, so that a slow name
// server leaves time to connect.
func dialNode(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, cancel := context.WithTimeout(ctx, lookupTimeout)
	addresses, err := net.DefaultResolver.LookupHost(found, host) // an IP address resolves to itself
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

// dialFirst makes n dials, each when the previous one has failed or is slow, until one succeeds or all have failed.
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

// closeIdle closes idle connections. It is called when a reused connection gave no answer, because the machine may be
// gone and the other connections dead, too.
func (c *Client) closeIdle() {
	c.http.CloseIdleConnections()
	c.waiting.CloseIdleConnections()
}

// isSilence reports whether err is a timeout.
func isSilence(err error) bool {
	var late interface{ Timeout() bool }
	return errors.As(err, &late) && late.Timeout()
}
