package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/web"
)

// root answers GET /: browsers are redirected to the page, other clients get a list of addresses. Addresses are
// relative, so that they also work behind a proxy that adds a path.
func (s *Server) root(r *exchange.Request) {
	h := &r.HTTP.Response.Header
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAccept)
	if !s.cfg.Page.Off && bytes.Contains(r.HTTP.Request.Header.Peek(fasthttp.HeaderAccept), []byte("text/html")) {
		r.ToPage(exchange.PageAddress)
		return
	}
	if !r.TakeTurn() {
		return
	}
	b := jsonout.StringField(r.Body(), `{"success":true,"name":"claimq","version":`, s.cfg.Version)
	b = append(b, `,"links":{`...)
	if !s.cfg.Page.Off {
		b = append(b, `"page":"`+exchange.PageAddress+`",`...)
	}
	r.Send(fasthttp.StatusOK, append(b, `"description":"openapi.json","tasks":"api/tasks","types":"api/types","health":"healthz","ready":"readyz","metrics":"metrics"}}`...))
}

// withoutSlash answers GET /ui.
func (s *Server) withoutSlash(r *exchange.Request) {
	if s.cfg.Page.Off {
		r.Refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	r.ToPage(exchange.PageAddress)
}

// site returns this binary's page. ok is false if the request was already answered.
func (s *Server) site(r *exchange.Request) (site *web.Site, ok bool) {
	site, err := web.Built()
	if err != nil {
		r.RefuseCode(err)
	}
	return site, err == nil
}

// page answers GET /ui/ and below with the files of the page.
func (s *Server) page(r *exchange.Request) {
	if s.cfg.Page.Off {
		r.Refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	site, ok := s.site(r)
	if !ok {
		return
	}
	f, ok := site.Find(string(r.Target.Rest))
	if !ok {
		r.Refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	if !r.TakeTurn() {
		return
	}
	h := &r.HTTP.Response.Header
	for _, header := range web.Headers {
		h.Set(header[0], header[1])
	}
	h.Set(fasthttp.HeaderCacheControl, f.Cache)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if r.HTTP.Request.Header.HasAcceptEncoding("gzip") {
		h.SetContentEncoding("gzip")
		r.SendShared(f.Type, f.Zipped)
		return
	}
	r.SendShared(f.Type, f.Plain)
}
