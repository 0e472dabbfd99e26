package api

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/audit"
	"github.com/claimq/claimq/api/keyring"
)

// tellDenied tells of a request from outside that was answered with 401 or 403: the log,
// of some, and the audit file, of those with a known key. Both are told from where it
// came and what it was after, but nothing that it sent, which may have a key in it.
func (r *request) tellDenied() {
	status := r.http.Response.StatusCode()
	if status != 401 && status != 403 || r.forwarded {
		return
	}
	k := r.barred
	if r.who != nil {
		k = r.who
	}
	r.server.denied(r.http, k, r.target.call, r.id, r.start)
}

// denied is tellDenied of a request of which no more is known than its answer, and by
// which key it was made, nil: it is not known.
func (s *host) denied(ctx *fasthttp.RequestCtx, k *keyring.Caller, c *call, id []byte, now time.Time) {
	name, resp := "", &ctx.Response
	if k != nil {
		name = k.Name
	}
	if quiet, ok := s.denials.MayLog(now); ok {
		s.logger.Warn("denied a request", "remote_addr", ctx.RemoteAddr(), "status", resp.StatusCode(), "call", c.String(), "key", name,
			"request_id", s.loggedID(id), "more_not_logged", quiet)
	}
	if s.cfg.Audit == nil || k == nil {
		return
	}
	s.cfg.Audit.Denied(now, func() audit.Denial {
		return audit.Denial{
			At: now, Key: name, From: keyring.SourceOf(ctx.RemoteAddr()), Call: c.String(), Status: resp.StatusCode(), RequestID: s.loggedID(id),
			Answer: bytes.Clone(resp.Body()),
		}
	})
}
