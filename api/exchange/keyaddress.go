package exchange

import (
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
)

// HeaderFrom holds the address of the client of a forwarded request, as seen by the node that the client is connected
// to. It is set for every forwarded request, and read only on the peer port, where members send it, so that clients
// cannot set it.
const HeaderFrom = "X-Claimq-From"

// Source returns the address of the client, or the zero value if it is unknown.
func (r *Request) Source() netip.Addr {
	if !r.Forwarded {
		return keyring.SourceOf(r.HTTP.RemoteAddr())
	}
	address, err := netip.ParseAddr(string(r.HTTP.Request.Header.Peek(HeaderFrom)))
	if err != nil {
		return netip.Addr{}
	}
	return address
}

// passSource tells the leader the client's address.
func passSource(out *fasthttp.Request, from netip.Addr) {
	if from.IsValid() {
		out.Header.Set(HeaderFrom, from.String())
	}
}
