package exchange

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// HeaderBytes bounds a request's line and headers together. A forwarded request is a little longer and must fit the
// peer port's bound.
const HeaderBytes = 12 << 10

// Malformed answers a request that is not valid HTTP, and closes the connection.
func (s *Host) Malformed(ctx *fasthttp.RequestCtx, err error) {
	id := requestID(nil, ctx.Request.Header.Peek(HeaderRequestID), time.Now())
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	f := &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "The request is not valid HTTP/1.1", Advice: "Send a well-formed request"}
	conn, _ := ctx.Conn().(*port.Conn)
	if conn != nil {
		conn.Received()
	}
	denied := false // because there is no valid key
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && conn != nil && conn.Head.Refusal != nil:
		if f = conn.Head.Refusal; f.Code != wire.CodeOverloaded {
			s.Metrics.AuthFailures.Refuse(conn.Head.Why, f)
			denied = true
		}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		f = s.bodyTooLarge()
	case errors.As(err, &small):
		f.Code, f.Text = wire.CodeHeadersTooLarge, "The request's line and headers are larger than "+strconv.Itoa(HeaderBytes)+" bytes"
		f.Advice = "Send shorter headers and a shorter query"
	case errors.As(err, &timeout) && timeout.Timeout():
		within := port.ReadTimeout
		if conn != nil && !conn.Known() {
			within = port.StrangerTimeout
		}
		f.Text = "The request did not arrive within " + within.String()
		f.Advice = "Send the whole request at once"
	case errors.Is(err, port.ErrBodiesFull):
		f = s.Port.BodiesFull()
	case errors.Is(err, port.ErrClientTLS):
		f.Text = "The client speaks TLS and this port speaks plain HTTP"
		f.Advice = "Use http:// in place of https://, or start the server with a certificate (--http-tls-cert-file)"
	}
	resp := &ctx.Response
	resp.Reset()
	resp.SetStatusCode(f.Code.Status())
	resp.Header.SetContentType("application/json")
	resp.Header.SetBytesV(HeaderRequestID, id)
	resp.SetBody(refuse.Append(nil, f, id))
	if denied {
		s.denied(ctx, conn.Head.Barred, s.Calls.none, id, time.Now())
	}
	s.Calls.none.counts.Count(string(f.Code))
	setRetryAfter(resp, f.Code)
	switch f.Code {
	case wire.CodeOverloaded:
		s.Metrics.Overload(f.Reason)
	case wire.CodeUnauthorized:
		resp.Header.Set(fasthttp.HeaderWWWAuthenticate, keyring.Challenge)
	}
	if errors.Is(err, fasthttp.ErrBodyTooLarge) || f.Code == wire.CodeOverloaded || errors.Is(err, port.ErrClientTLS) {
		answerSender(ctx)
	}
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

func (s *Host) bodyTooLarge() *refuse.Refusal {
	return refuse.TooLarge("", "The body is larger than "+strconv.Itoa(s.Cfg.Limits.BodyBytes)+" bytes")
}

// answerSender answers a client that is still sending its body. Later writes of the HTTP server are discarded.
func answerSender(ctx *fasthttp.RequestCtx) {
	if conn, ok := ctx.Conn().(*port.Conn); ok {
		ctx.Response.SetConnectionClose()
		conn.Farewell(&ctx.Response)
	}
}

// AnsweredAlone counts an answer of the port that belongs to no request, and returns an id for it.
func (s *Host) AnsweredAlone(f *refuse.Refusal) (id []byte) {
	s.Calls.none.counts.Count(string(f.Code))
	if f.Code == wire.CodeOverloaded {
		s.Metrics.Overload(f.Reason)
	}
	return requestID(nil, nil, time.Now())
}
