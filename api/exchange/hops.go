package exchange

import (
	"bufio"
	"bytes"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/port"
)

// Rules of HTTP between two hops that the HTTP server does not implement.

// closeIfTold closes the connection after the answer if the Connection header contains close in any case and position
// (RFC 9110, 7.6.1). The HTTP server recognizes it only alone and in lower case.
func closeIfTold(h *fasthttp.RequestHeader) {
	if h.ConnectionClose() || len(h.Peek(fasthttp.HeaderConnection)) == 0 {
		return
	}
	for line := range bytes.SplitSeq(h.RawHeaders(), []byte{'\n'}) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		if !bytes.EqualFold(name, []byte(fasthttp.HeaderConnection)) {
			continue
		}
		for word := range bytes.SplitSeq(value, []byte{','}) {
			if bytes.EqualFold(bytes.TrimSpace(word), []byte("close")) {
				h.SetConnectionClose()
				return
			}
		}
	}
}

// dropTrailers removes the trailer of a chunked body. The HTTP server adds it to the headers, where a field may be a
// credential, or one that a proxy should have checked (RFC 9110, 6.5.1). The head is parsed again from the bytes
// before the body.
func dropTrailers(h *fasthttp.RequestHeader) {
	if h.ContentLength() != -1 {
		return
	}
	b := append(append([]byte(nil), h.Method()...), ' ')
	b = append(append(append(b, h.RequestURI()...), ' '), h.Protocol()...)
	b = append(append(b, "\r\n"...), bytes.TrimRight(h.RawHeaders(), "\r\n")...)
	b = append(b, "\r\n\r\n"...)
	var head fasthttp.RequestHeader
	if err := head.Read(bufio.NewReaderSize(bytes.NewReader(b), len(b))); err != nil {
		head.SetMethodBytes(h.Method()) // it was parsed once; trust nothing of it
		head.SetRequestURIBytes(h.RequestURI())
		head.SetConnectionClose()
	}
	if h.ConnectionClose() {
		head.SetConnectionClose()
	}
	head.CopyTo(h)
}

// Expected is called for a request with Expect: 100-continue before its body is sent. If the request will be refused
// whatever its body is, it is refused at once (RFC 9110, 10.1.1).
func (s *Host) Expected(ctx *fasthttp.RequestCtx) (status int) {
	conn, ok := ctx.Conn().(*port.Conn)
	if !ok {
		return fasthttp.StatusContinue
	}
	h := &ctx.Request.Header
	switch {
	case conn.Head.Refusal != nil:
		s.Malformed(ctx, fasthttp.ErrBodyTooLarge)
	case s.refusesHead(h, keyring.SourceOf(conn.RemoteAddr())):
		s.Handle(ctx, false)
		answerSender(ctx)
	case h.ContentLength() > s.Cfg.Limits.BodyBytes:
		s.Malformed(ctx, fasthttp.ErrBodyTooLarge)
	default:
		return fasthttp.StatusContinue
	}
	return ctx.Response.StatusCode()
}

// refusesHead reports whether a request of the public port from that address is refused whatever its body is; Handle
// then gives the reason without reading it. It counts nothing, because Handle checks again.
func (s *Host) refusesHead(h *fasthttp.RequestHeader, from netip.Addr) bool {
	uri := h.RequestURI()
	path, query := SplitURI(uri)
	t, bad := s.Calls.paths.find(h.Method(), path)
	if bad != nil || !printable(uri) || s.Draining.Load() && !t.call.Has(Always) {
		return true
	}
	if _, bad := s.guard(h, t.call); bad != nil {
		return true
	}
	if params, bad := parseQuery(query); !t.call.Has(Probe) && (bad != nil || t.call.Has(Mutation) && len(params) > 0) {
		return true
	}
	keys := s.Keys.Load()
	if keys == nil || t.call.Roles.Has(keyring.RoleNone) {
		return false
	}
	who, _, bad := s.sentWith(keys, h, time.Now(), from)
	return bad != nil || t.call.Roles&who.Roles == 0 || t.call.Has(Whole) && len(who.Types) > 0
}
