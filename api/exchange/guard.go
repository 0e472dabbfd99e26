package exchange

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// guard prevents browsers from being used against the server. Pages of other origins may not call it (Sec-Fetch-Site,
// Origin) unless they are allowed. On an open server the Host must be one of this server's names, because an attacker
// can point another name here; with keys this does not matter, because such a page has none. Health is answered under
// any Host, because probes use any address, and calls with the same answer for everyone may be linked from anywhere.
// crossOrigin says that a page of another origin was refused.
func (s *Host) guard(h *fasthttp.RequestHeader, c *Call) (crossOrigin bool, bad *refuse.Refusal) {
	host := h.Host()
	if !c.Has(AnyHost) {
		if len(host) == 0 {
			return false, refuse.Param("Host", "Missing required header: Host")
		}
		if s.Open() && !s.knowsHost(host) {
			return false, refuse.New(wire.CodeForbidden, "The Host header names an address that is not this server's",
				"Use a loopback address, or start the server with --http-advertise set to the address that clients use").At("Host")
		}
	}
	if c.Has(Linked) || s.allowedOrigin(h) != nil {
		return false, nil
	}
	if site := h.Peek("Sec-Fetch-Site"); len(site) > 0 && string(site) != "same-origin" && string(site) != "none" {
		return true, RefuseOrigin("Sec-Fetch-Site")
	}
	if origin := h.Peek("Origin"); len(origin) > 0 && !sameOrigin(origin, host) {
		return true, RefuseOrigin("Origin")
	}
	return false, nil
}

// RefuseOrigin refuses a request because of its origin.
func RefuseOrigin(header string) *refuse.Refusal {
	return refuse.New(wire.CodeForbidden, "A cross-origin request of a browser is refused",
		"Call the API from a program, from a page of the same origin, or from one that allowed_origins names").At(header)
}

// sameOrigin reports whether origin is http or https at host.
func sameOrigin(origin, host []byte) bool {
	scheme, rest, ok := bytes.Cut(origin, []byte("://"))
	return ok && (string(scheme) == "http" || string(scheme) == "https") && bytes.EqualFold(rest, host)
}

// knowsHost reports whether a Host header is one of this server's names.
func (s *Host) knowsHost(host []byte) bool {
	name, port := splitPort(host)
	if !validPort(port) {
		return false
	}
	switch string(name) {
	case "127.0.0.1", "localhost", "[::1]":
		return true
	}
	text := strings.TrimSuffix(strings.ToLower(string(name)), ".")
	if text == "localhost" || strings.HasSuffix(text, ".localhost") {
		return true
	}
	if s.hosts[text] {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return err == nil && (ip.Unmap().IsLoopback() || s.Cfg.Insecure)
}

// splitPort splits host:port; an IPv6 address keeps its brackets.
func splitPort(host []byte) (name, port []byte) {
	i := bytes.LastIndexByte(host, ':')
	if i < 0 || bytes.IndexByte(host[i:], ']') >= 0 {
		return host, nil
	}
	return host[:i], host[i+1:]
}

func validPort(port []byte) bool {
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(port) <= 5
}

// hostName returns the name or address of an advertised host or URL, in the form in which knowsHost looks it up.
func hostName(advertised string) string {
	text := strings.ToLower(advertised)
	if _, after, ok := strings.Cut(text, "://"); ok {
		text = after
	}
	text, _, _ = strings.Cut(text, "/")
	name, _ := splitPort([]byte(text))
	return strings.TrimSuffix(string(name), ".")
}
