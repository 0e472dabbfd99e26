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

// The head of a request, its line and headers, is there before its body is read:
// what can be decided by it is decided then. That a stranger holds little, and that
// memory for a body is not asked for before there is room for it.

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

// giveBody gives a large body's memory back, once the request is answered.
func (r *Request) giveBody() {
	if !r.Forwarded && cap(r.HTTP.Request.Body()) > KeptBytes {
		r.Server.Port.Buffers.Put(r.HTTP.Request.SwapBody(nil))
	}
}

// ctxOf returns the request that h is the head of. The HTTP server calls what
// hears of heads with that of a RequestCtx and does not say whose; its connection
// is found there only. TestServer_ctxOf fails should that change.
func ctxOf(h *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	const before = unsafe.Offsetof(fasthttp.RequestCtx{}.Request) + unsafe.Offsetof(fasthttp.Request{}.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(h), -int(before)))
}

// closeAmbiguous has the connection closed behind the answer to a request with
// both Transfer-Encoding and Content-Length. It is read as chunked; a proxy that
// goes by the length would take what follows for another request, perhaps
// somebody else's.
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
