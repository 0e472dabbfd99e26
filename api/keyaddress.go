package api

import (
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
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
		return keyring.SourceOf(r.http.RemoteAddr())
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
