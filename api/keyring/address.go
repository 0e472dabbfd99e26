package keyring

import (
	"net"
	"net/netip"
	"slices"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// SourceOf returns the remote address of a connection; an IPv4 address is returned as such.
func SourceOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// admits reports whether the key may be used from an address.
func (k *Caller) admits(from netip.Addr) bool {
	return len(k.Addresses) == 0 || slices.ContainsFunc(k.Addresses, func(p netip.Prefix) bool { return p.Contains(from) })
}

// refuseSource refuses a key that may not be used from the address.
func refuseSource(k *Caller, from netip.Addr) *refuse.Refusal {
	where := "from " + from.String()
	if !from.IsValid() {
		where = "from an address that this node does not know"
	}
	what := "API key"
	if k.token != nil {
		what = "token"
	}
	return refuse.New(wire.CodeForbidden, "This "+what+" may not be used "+where,
		"Use it from one of its addresses: behind a proxy, the proxy's address counts")
}
