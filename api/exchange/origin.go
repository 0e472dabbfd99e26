package exchange

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

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
func (s *Host) allowedOrigin(h *fasthttp.RequestHeader) []byte {
	if len(s.Origins) == 0 {
		return nil
	}
	origin := h.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 || !s.Origins[string(origin)] && !s.Origins[string(bytes.ToLower(origin))] {
		return nil
	}
	return origin
}

// shareAnswer lets the page of an allowed origin read the answer. Cookies are not used, so they are not allowed.
func (r *Request) shareAnswer() {
	in, out := &r.HTTP.Request.Header, &r.HTTP.Response.Header
	// Needed even if nothing below is set, because otherwise a cache could give the page another client's answer.
	vary := fasthttp.HeaderOrigin
	if others := out.Peek(fasthttp.HeaderVary); len(others) > 0 {
		vary = string(others) + ", " + vary
	}
	out.Set(fasthttp.HeaderVary, vary)
	origin := r.Server.allowedOrigin(in)
	if origin == nil {
		return
	}
	out.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
	if !r.Target.call.Has(Preflight) || len(in.Peek(fasthttp.HeaderAccessControlRequestMethod)) == 0 {
		out.Set(fasthttp.HeaderAccessControlExposeHeaders, corsExposed)
		return
	}
	out.Set(fasthttp.HeaderAccessControlAllowMethods, r.Target.allow)
	out.Set(fasthttp.HeaderAccessControlAllowHeaders, corsHeaders)
	out.Set(fasthttp.HeaderAccessControlMaxAge, corsMaxAgeS)
}
