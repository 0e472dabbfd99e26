package exchange

import (
	"bytes"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
)

// The head of a request, its line and headers, is read before its body. Whatever can be decided from it is decided
// then, so that a stranger occupies little memory, and memory for a body is allocated only if there is room.

// HeadRead is called with the head of each request before its body is read.
func (s *Host) HeadRead(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	closeAmbiguous(h)
	closeIfTold(h)
	conn, ok := ctxOf(h).Conn().(*port.Conn)
	if !ok {
		return config
	}
	conn.HeadCame()
	length := h.ContentLength()
	chunked := length == -1
	if conn.Known() && !chunked && length <= port.BodyFreeBytes {
		return config
	}
	var who *keyring.Caller
	var why keyring.Failure
	var bad *refuse.Refusal
	if keys := s.Keys.Load(); keys != nil {
		who, why, bad = s.sentWith(keys, h, time.Now(), keyring.SourceOf(conn.RemoteAddr()))
	}
	conn.Head.Crowded = bad == nil && !conn.Known() && who != nil && !conn.CountFor(who)
	if bad == nil && !conn.Known() && !conn.Head.Crowded {
		conn.Admit()
		config.ReadTimeout = port.ReadTimeout
	}
	switch {
	case conn.Head.Crowded && (chunked || length > port.BodyFreeBytes):
		conn.Head.Refusal, config.MaxRequestBodySize = lasting.Refuse(lasting.Connection), 1
	case bad != nil && (chunked || length > port.StrangerBodyBytes):
		conn.Head.Refusal, conn.Head.Why, conn.Head.Barred = bad, why, who
		config.MaxRequestBodySize = min(port.StrangerBodyBytes, s.Cfg.Limits.BodyBytes)
	case bad == nil && length > port.BodyFreeBytes && length <= s.Cfg.Limits.BodyBytes && !conn.ExpectBody(length):
		conn.Head.Refusal, config.MaxRequestBodySize = s.Port.BodiesFull(), 1
	case bad == nil && length > port.BodyFreeBytes && length <= s.Cfg.Limits.BodyBytes:
		ctxOf(h).Request.SwapBody(s.Port.Buffers.Get(length))
	}
	return config
}

// giveBody returns the memory of a large body once the request is answered.
func (r *Request) giveBody() {
	if !r.Forwarded && cap(r.HTTP.Request.Body()) > KeptBytes {
		r.Server.Port.Buffers.Put(r.HTTP.Request.SwapBody(nil))
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
