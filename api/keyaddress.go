package api

import (
	"net"
	"net/netip"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// headerFrom has the address of the client of a request that is passed on, as the node
// sees it that the client is connected to. It is read from the peer port alone, where
// members tell it, and set for every request: what a client sends by that name goes
// nowhere.
const headerFrom = "X-Claimq-From"

// source returns the address that the request comes from, the zero value if it is
// unknown.
func (r *request) source() netip.Addr {
	if !r.forwarded {
		return sourceOf(r.http.RemoteAddr())
	}
	address, err := netip.ParseAddr(string(r.http.Request.Header.Peek(headerFrom)))
	if err != nil {
		return netip.Addr{}
	}
	return address
}

// passSource tells the leader where a request comes from.
func passSource(out *fasthttp.Request, from netip.Addr) {
	if from.IsValid() {
		out.Header.Set(headerFrom, from.String())
	}
}

// sourceOf returns the address at the other end of a connection, one of IPv4 as such.
func sourceOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// admits reports whether the key may be used from an address.
func (k *apiKey) admits(from netip.Addr) bool {
	return len(k.addresses) == 0 || slices.ContainsFunc(k.addresses, func(p netip.Prefix) bool { return p.Contains(from) })
}

// refuseSource is the refusal of a key that is not for the address.
func refuseSource(k *apiKey, from netip.Addr) *refuse.Refusal {
	where := "from " + from.String()
	if !from.IsValid() {
		where = "from an address that this node does not know"
	}
	what := "API key"
	if k.token != nil {
		what = "token"
	}
	return &refuse.Refusal{
		Code: wire.CodeForbidden, Text: "This " + what + " may not be used " + where,
		Advice: "Use it from one of its addresses: behind a proxy, the proxy's address counts",
	}
}
