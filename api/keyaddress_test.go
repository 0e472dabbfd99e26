package api

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/nodes"
)

func fromAddresses(k door.Key, prefixes ...string) door.Key {
	for _, p := range prefixes {
		k.Addresses = append(k.Addresses, netip.MustParsePrefix(p))
	}
	return k
}

// remoteConn is a connection from a given address.
type remoteConn struct {
	conntest.Nop
	remote net.Addr
}

func (c remoteConn) RemoteAddr() net.Addr { return c.remote }

// callFrom is call from a given address.
func (s *Server) callFrom(t *testing.T, from, target, body string, headers ...string) answer {
	t.Helper()
	remote := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 4711))
	return do(t, func(ctx *fasthttp.RequestCtx) {
		var own fasthttp.RequestCtx
		own.Init2(remoteConn{remote: remote}, nil, true)
		ctx.Request.CopyTo(&own.Request)
		s.core.handle(&own, false)
		own.Response.CopyTo(&ctx.Response)
	}, target, body, headers...)
}

// A key with addresses works only from these, on any node, and regardless of the headers that a client sends.
func TestKeys_Addresses(t *testing.T) {
	t.Parallel()
	key := fromAddresses(testKey("operator"), "10.0.0.0/8", "2001:db8::/32", "::1/128")
	anywhere := testKey("operator")
	for _, c := range []struct {
		name               string
		ofLeader, follower []door.Key
	}{
		{"both have the addresses", []door.Key{key}, []door.Key{key}},
		{"the leader alone has them", []door.Key{key}, []door.Key{anywhere}},
		{"the follower has no keys", []door.Key{key}, nil},
	} {
		leader, follower := setupBoth(t, c.ofLeader, c.follower)
		for _, s := range []*Server{leader, follower} {
			for from, may := range map[string]bool{
				"10.0.0.1": true, "10.255.1.2": true, "::ffff:10.0.0.1": true, "2001:db8::7": true, "::1": true,
				"11.0.0.1": false, "127.0.0.1": false, "2001:db9::1": false, "::2": false, "fe80::1%eth0": false,
			} {
				got := s.callFrom(t, from, "POST /api/tasks", `{"params":1}`, with("operator"))
				if may {
					got.good(t, 201)
					continue
				}
				f := got.refused(t, wire.CodeForbidden)
				plain, _, _ := strings.Cut(from, "%")
				if f["error"] != "This API key may not be used from "+plain {
					t.Errorf("%s, from %s: %v", c.name, from, f)
				}
				for _, forged := range []string{"X-Claimq-From: 10.0.0.1", "x-claimq-from: 10.0.0.1", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1"} {
					s.callFrom(t, from, "POST /api/tasks", `{"params":1}`, with("operator"), forged).refused(t, wire.CodeForbidden)
				}
			}
		}
	}
}

// A forwarded request without the client's address is refused.
func TestKeys_AddressUntold(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(fromAddresses(testKey("operator"), "0.0.0.0/0", "::/0"), testKey("worker")))
	claim := func(from netip.Addr, key string) answer {
		return passed(t, s, nodes.Passing{Known: true, From: from}, "POST /api/tasks/claim", `{"worker_id":"w","limit":1}`, with(key))
	}
	f := claim(netip.Addr{}, "operator").refused(t, wire.CodeForbidden)
	if f["error"] != "This API key may not be used from an address that this node does not know" {
		t.Error(f)
	}
	claim(netip.MustParseAddr("192.0.2.1"), "operator").good(t, 200)
	claim(netip.Addr{}, "worker").good(t, 200)
}

// A stream ends when its client's address is removed from the key.
func TestStream_KeyAddresses(t *testing.T) {
	t.Parallel()
	key := fromAddresses(testKey("reader"), "127.0.0.0/8")
	keys := []door.Key{testKey("operator"), key}
	s, _ := setup(t, func(c *Config) { c.Keys = func() ([]door.Key, error) { return keys, nil } })
	st := openStream(t, listen(t, s), "/api/events", with("reader"))
	st.begin()
	keys = []door.Key{testKey("operator"), fromAddresses(testKey("reader"), "10.0.0.0/8")}
	s.HangUp()
	if b, err := st.next(); err != nil || b.event != "error" || !strings.Contains(b.data, `"forbidden"`) {
		t.Errorf("%+v, %v", b, err)
	}
}
