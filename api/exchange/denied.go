package exchange

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/audit"
	"github.com/claimq/claimq/api/keyring"
)

// tellDenied records a request from outside that was answered with 401 or 403: a sample of them in the log, and those
// with a known key in the audit file. The record has the address and the call, but nothing that the client sent,
// because that may include a key.
func (r *Request) tellDenied() {
	status := r.HTTP.Response.StatusCode()
	if status != 401 && status != 403 || r.Forwarded {
		return
	}
	k := r.Barred
	if r.Who != nil {
		k = r.Who
	}
	r.Server.denied(r.HTTP, k, r.Target.call, r.ID, r.Start)
}

// denied records a request of which only its answer and its key (nil: unknown) are known.
func (s *Host) denied(ctx *fasthttp.RequestCtx, k *keyring.Caller, c *Call, id []byte, now time.Time) {
	name, resp := "", &ctx.Response
	if k != nil {
		name = k.Name
	}
	if quiet, ok := s.denials.MayLog(now); ok {
		s.Logger.Warn("denied a request", "remote_addr", ctx.RemoteAddr(), "status", resp.StatusCode(), "call", c.String(), "key", name,
			"request_id", s.LoggedID(id), "more_not_logged", quiet)
	}
	if s.Cfg.Audit == nil || k == nil {
		return
	}
	s.Cfg.Audit.Denied(now, func() audit.Denial {
		return audit.Denial{
			At: now, Key: name, From: keyring.SourceOf(ctx.RemoteAddr()), Call: c.String(), Status: resp.StatusCode(), RequestID: s.LoggedID(id),
			Answer: bytes.Clone(resp.Body()),
		}
	})
}
