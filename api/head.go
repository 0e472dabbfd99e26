package api

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// The head of a request, its line and headers, is read before its body. Whatever can be decided from it is decided
// then, so that a stranger occupies little memory, and memory for a body is allocated only if there is enough.

// headRead is called with the head of each request before its body is read.
func (s *core) headRead(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	closeAmbiguous(h)
	closeIfTold(h)
	conn, ok := ctxOf(h).Conn().(*door.Conn)
	if !ok {
		return config
	}
	conn.HeadCame()
	length := h.ContentLength()
	chunked := length == -1
	if conn.Known() && !chunked && length <= door.BodyFreeBytes {
		return config
	}
	var who *door.Caller
	var why door.Failure
	var bad *refuse.Refusal
	if keys := s.keys.Load(); keys != nil {
		who, why, bad = s.sentWith(keys, h, time.Now(), door.SourceOf(conn.RemoteAddr()))
	}
	conn.Head.Crowded = bad == nil && !conn.Known() && who != nil && !conn.CountFor(who)
	if bad == nil && !conn.Known() && !conn.Head.Crowded {
		conn.Admit()
		config.ReadTimeout = door.ReadTimeout
	}
	switch {
	case conn.Head.Crowded && (chunked || length > door.BodyFreeBytes):
		conn.Head.Refusal, config.MaxRequestBodySize = door.RefuseShare(door.ShareConnection), 1
	case bad != nil && (chunked || length > door.StrangerBodyBytes):
		conn.Head.Refusal, conn.Head.Why, conn.Head.Barred = bad, why, who
		config.MaxRequestBodySize = min(door.StrangerBodyBytes, s.cfg.Limits.BodyBytes)
	case bad == nil && length > door.BodyFreeBytes && length <= s.cfg.Limits.BodyBytes && !conn.ExpectBody(length):
		conn.Head.Refusal, config.MaxRequestBodySize = s.port.BodiesFull(), 1
	case bad == nil && length > door.BodyFreeBytes && length <= s.cfg.Limits.BodyBytes:
		ctxOf(h).Request.SwapBody(s.port.Buffers.Get(length))
	}
	return config
}

// reuseBody keeps the memory of a large body for others, once the request is answered.
func (r *request) reuseBody() {
	if !r.hop.forwarded && cap(r.input()) > keptBytes {
		r.core.port.Buffers.Put(r.http.Request.SwapBody(nil))
	}
}

// ctxOf returns the RequestCtx that h is part of. The HTTP server passes only the header, which is always that of a
// RequestCtx; the connection can be found only there. TestServer_ctxOf fails if this changes.
func ctxOf(h *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	const before = unsafe.Offsetof(fasthttp.RequestCtx{}.Request) + unsafe.Offsetof(fasthttp.Request{}.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(h), -int(before)))
}

// closeAmbiguous closes the connection after the answer to a request with both Transfer-Encoding and Content-Length.
// This server reads it as chunked; a proxy that uses the length would take what follows for another request, possibly
// of another client.
func closeAmbiguous(h *fasthttp.RequestHeader) {
	if h.ContentLength() != -1 {
		return
	}
	for line := range bytes.SplitSeq(h.RawHeaders(), []byte{'\n'}) {
		if name, _, _ := bytes.Cut(line, []byte{':'}); bytes.EqualFold(name, []byte(fasthttp.HeaderContentLength)) {
			h.SetConnectionClose()
			return
		}
	}
}

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

// expected is called for a request with Expect: 100-continue before its body is sent. If the request will be refused
// whatever its body is, it is refused at once (RFC 9110, 10.1.1).
func (s *core) expected(ctx *fasthttp.RequestCtx) (status int) {
	conn, ok := ctx.Conn().(*door.Conn)
	if !ok {
		return fasthttp.StatusContinue
	}
	h := &ctx.Request.Header
	switch {
	case conn.Head.Refusal != nil:
		s.malformed(ctx, fasthttp.ErrBodyTooLarge)
	case s.refusesHead(h, door.SourceOf(conn.RemoteAddr())):
		s.handle(ctx, false)
		answerSender(ctx)
	case h.ContentLength() > s.cfg.Limits.BodyBytes:
		s.malformed(ctx, fasthttp.ErrBodyTooLarge)
	default:
		return fasthttp.StatusContinue
	}
	return ctx.Response.StatusCode()
}

// refusesHead reports whether a request of the public port from that address is refused whatever its body is; handle
// then gives the reason without reading it. It counts nothing, because handle checks again.
func (s *core) refusesHead(h *fasthttp.RequestHeader, from netip.Addr) bool {
	uri := h.RequestURI()
	path, query := splitURI(uri)
	t, bad := s.calls.paths.find(h.Method(), path)
	if bad != nil && !s.sqs.off {
		return false // it may be a call of SQS; that of a form is in its body
	}
	if bad != nil || !printable(uri) || s.draining.Load() && !t.call.has(whileDraining) {
		return true
	}
	if _, bad := s.guard(h, t.call); bad != nil {
		return true
	}
	if params, bad := parseQuery(query); !t.call.has(ignoresParams) && (bad != nil || t.call.has(mutation) && len(params) > 0) {
		return true
	}
	keys := s.keys.Load()
	if keys == nil || t.call.roles.Has(door.RoleNone) {
		return false
	}
	who, _, bad := s.sentWith(keys, h, time.Now(), from)
	return bad != nil || t.call.roles&who.Roles == 0 || t.call.has(needsAllTypes) && len(who.Types) > 0
}

// headerBytes bounds a request's line and headers together. A forwarded request is a little longer and must fit the
// peer port's bound.
const headerBytes = 12 << 10

// malformed answers a request that is not valid HTTP, and closes the connection.
func (s *core) malformed(ctx *fasthttp.RequestCtx, err error) {
	id := requestID(nil, ctx.Request.Header.Peek(headerRequestID), time.Now())
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	f := &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "The request is not valid HTTP/1.1", Advice: "Send a well-formed request"}
	conn, _ := ctx.Conn().(*door.Conn)
	if conn != nil {
		conn.Received()
	}
	denied := false // because there is no valid key
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && conn != nil && conn.Head.Refusal != nil:
		if f = conn.Head.Refusal; f.Code != wire.CodeOverloaded {
			s.metrics.AuthFailures.Refuse(conn.Head.Why, f)
			denied = true
		}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		f = s.bodyTooLarge()
	case errors.As(err, &small):
		f.Code, f.Text = wire.CodeHeadersTooLarge, "The request's line and headers are larger than "+strconv.Itoa(headerBytes)+" bytes"
		f.Advice = "Send shorter headers and a shorter query"
	case errors.As(err, &timeout) && timeout.Timeout():
		within := door.ReadTimeout
		if conn != nil && !conn.Known() {
			within = door.StrangerTimeout
		}
		f.Text = "The request did not arrive within " + within.String()
		f.Advice = "Send the whole request at once"
	case errors.Is(err, door.ErrBodiesFull):
		f = s.port.BodiesFull()
	case errors.Is(err, door.ErrClientTLS):
		f.Text = "The client speaks TLS and this port speaks plain HTTP"
		f.Advice = "Use http:// in place of https://, or start the server with a certificate (--http-tls-cert-file)"
	}
	resp := &ctx.Response
	resp.Reset()
	resp.Header.SetBytesV(headerRequestID, id)
	if !s.sqs.refuseUnread(&ctx.Request.Header, resp, f, id) {
		resp.SetStatusCode(f.Code.Status())
		resp.Header.SetContentType("application/json")
		resp.SetBody(refuse.Append(nil, f, id))
	}
	if denied {
		s.denied(ctx, conn.Head.Barred, s.calls.none, id, time.Now())
	}
	s.calls.none.counts.Count(string(f.Code))
	setRetryAfter(resp, f.Code)
	switch f.Code {
	case wire.CodeOverloaded:
		s.metrics.Overload(f.Reason)
	case wire.CodeUnauthorized:
		resp.Header.Set(fasthttp.HeaderWWWAuthenticate, door.Challenge)
	}
	answerSender(ctx)
}

// refuseEncoding refuses a body with a Content-Encoding, because its decoded size would need another bound.
func refuseEncoding(req *fasthttp.Request) *refuse.Refusal {
	coding := req.Header.ContentEncoding()
	if len(coding) == 0 || len(req.Body()) == 0 || strings.EqualFold(string(coding), "identity") {
		return nil
	}
	return refuse.New(wire.CodeUnsupportedEncoding, "The Content-Encoding "+jsonout.Shorten(string(coding))+" is not supported",
		"Send the body as it is, without Content-Encoding").At(fasthttp.HeaderContentEncoding)
}

func (s *core) bodyTooLarge() *refuse.Refusal {
	return refuse.TooLarge("", "The body is larger than "+strconv.Itoa(s.cfg.Limits.BodyBytes)+" bytes")
}

// answerSender answers a client that may still be sending. Later writes of the HTTP server are discarded.
func answerSender(ctx *fasthttp.RequestCtx) {
	if conn, ok := ctx.Conn().(*door.Conn); ok {
		ctx.Response.SetConnectionClose()
		conn.Farewell(&ctx.Response)
	}
}

// answeredAlone counts an answer of the port that belongs to no request, and returns an id for it.
func (s *core) answeredAlone(f *refuse.Refusal) (id []byte) {
	s.calls.none.counts.Count(string(f.Code))
	if f.Code == wire.CodeOverloaded {
		s.metrics.Overload(f.Reason)
	}
	return requestID(nil, nil, time.Now())
}
