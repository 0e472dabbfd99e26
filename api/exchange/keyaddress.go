package exchange

import (
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
)

// HeaderFrom has the address of the client of a request that is passed on, as the node
// sees it that the client is connected to. It is read from the peer port alone, where
// members tell it, and set for every request: what a client sends by that name goes
// nowhere.
const HeaderFrom = "X-Claimq-From"

// Source returns the address that the request comes from, the zero value if it is
// unknown.
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

// passSource tells the leader where a request comes from.
func passSource(out *fasthttp.Request, from netip.Addr) {
	if from.IsValid() {
		out.Header.Set(HeaderFrom, from.String())
	}
}
