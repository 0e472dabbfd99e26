package api

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
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
func (s *core) guard(h *fasthttp.RequestHeader, c *call) (crossOrigin bool, bad *refuse.Refusal) {
	host := h.Host()
	if !c.has(anyHost) {
		if len(host) == 0 {
			return false, refuse.Param("Host", "Missing required header: Host")
		}
		if s.open() && !s.knowsHost(host) {
			return false, refuse.New(wire.CodeForbidden, "The Host header names an address that is not this server's",
				"Use a loopback address, or start the server with --http-advertise set to the address that clients use").At("Host")
		}
	}
	if c.has(anyOrigin) || s.allowedOrigin(h) != nil {
		return false, nil
	}
	if site := h.Peek("Sec-Fetch-Site"); len(site) > 0 && string(site) != "same-origin" && string(site) != "none" {
		return true, refuseOrigin("Sec-Fetch-Site")
	}
	if origin := h.Peek("Origin"); len(origin) > 0 && !sameOrigin(origin, host) {
		return true, refuseOrigin("Origin")
	}
	return false, nil
}

func refuseOrigin(header string) *refuse.Refusal {
	return refuse.New(wire.CodeForbidden, "A cross-origin request of a browser is refused",
		"Call the API from a program, from a page of the same origin, or from one that allowed_origins names").At(header)
}

// sameOrigin reports whether origin is http or https at host.
func sameOrigin(origin, host []byte) bool {
	scheme, rest, ok := bytes.Cut(origin, []byte("://"))
	return ok && (string(scheme) == "http" || string(scheme) == "https") && bytes.EqualFold(rest, host)
}

// knowsHost reports whether a Host header is one of this server's names.
func (s *core) knowsHost(host []byte) bool {
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
	return err == nil && (ip.Unmap().IsLoopback() || s.cfg.Insecure)
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

// The headers that a page of an allowed origin may send and see.
const (
	corsHeaders = "Authorization, Content-Type, Last-Event-ID, Traceparent, X-API-Key, X-Claimq-Min-Index, X-Claimq-Redirect, X-Request-ID"
	corsExposed = "Location, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, X-Claimq-Index, X-Request-ID"
	// corsMaxAgeS tells browsers how long they may cache the preflight.
	corsMaxAgeS = "600"
)

// parseOrigins returns the set of allowed origins.
func parseOrigins(origins []string) (map[string]bool, error) {
	set := make(map[string]bool, len(origins))
	for i, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			return nil, fmt.Errorf("allowed_origins[%d] is %q: it must be http:// or https:// and a host, with the port if it is not the usual one, and nothing behind that", i, o)
		}
		set[strings.ToLower(o)] = true
	}
	return set, nil
}

// allowedOrigin returns the origin of an allowed page that sent the request, or nil.
func (s *core) allowedOrigin(h *fasthttp.RequestHeader) []byte {
	if len(s.origins) == 0 {
		return nil
	}
	origin := h.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 || !s.origins[string(origin)] && !s.origins[string(bytes.ToLower(origin))] {
		return nil
	}
	return origin
}

// shareAnswer lets the page of an allowed origin read the answer. Cookies are not used, so they are not allowed.
func (r *request) shareAnswer() {
	in, out := &r.http.Request.Header, &r.http.Response.Header
	// Needed even if nothing below is set, because otherwise a cache could give the page another client's answer.
	vary := fasthttp.HeaderOrigin
	if others := out.Peek(fasthttp.HeaderVary); len(others) > 0 {
		vary = string(others) + ", " + vary
	}
	out.Set(fasthttp.HeaderVary, vary)
	origin := r.core.allowedOrigin(in)
	if origin == nil {
		return
	}
	out.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
	if !r.target.call.has(preflight) || len(in.Peek(fasthttp.HeaderAccessControlRequestMethod)) == 0 {
		out.Set(fasthttp.HeaderAccessControlExposeHeaders, corsExposed)
		return
	}
	out.Set(fasthttp.HeaderAccessControlAllowMethods, r.target.allow)
	out.Set(fasthttp.HeaderAccessControlAllowHeaders, corsHeaders)
	out.Set(fasthttp.HeaderAccessControlMaxAge, corsMaxAgeS)
}
