package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/web"
)

// Page says what of the page a server serves.
type Page struct {
	// Off: there is nothing below /ui/.
	Off bool
	// ReadOnly: whoever comes by the page may read alone.
	ReadOnly bool
}

const (
	// headerPage is sent by the page with all its calls. Answers to these say in it which
	// page this node has, so that an older one notices, and in headerNode who answered.
	headerPage = "X-Claimq-Page"
	headerNode = "X-Claimq-Node"
	// pageAddress is where the page is, from the root.
	pageAddress = "ui/"
)

// root answers GET /: a browser is sent to the page, all else is told what there is.
// Addresses are relative, so that they lead there behind a proxy that adds a path, too.
func (s *Server) root(r *request) {
	h := &r.http.Response.Header
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAccept)
	if !s.cfg.Page.Off && bytes.Contains(r.http.Request.Header.Peek(fasthttp.HeaderAccept), []byte("text/html")) {
		r.toPage(pageAddress)
		return
	}
	b := append(r.body(), `{"success":true,"name":"claimq","version":`...)
	b = jsonout.String(b, s.cfg.Version)
	b = append(b, `,"links":{`...)
	if !s.cfg.Page.Off {
		b = append(b, `"page":"`+pageAddress+`",`...)
	}
	r.send(fasthttp.StatusOK, append(b, `"description":"openapi.json","tasks":"api/tasks","types":"api/types","health":"healthz","ready":"readyz","metrics":"metrics"}}`...))
}

// withoutSlash answers GET /ui.
func (s *Server) withoutSlash(r *request) {
	if s.cfg.Page.Off {
		r.refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	r.toPage(pageAddress)
}

func (r *request) toPage(address string) {
	r.label = "redirected"
	r.http.Response.Header.Set(fasthttp.HeaderLocation, address)
	r.http.SetStatusCode(fasthttp.StatusFound)
}

// site returns the page of this binary. ok is false if there is an answer already.
func (s *Server) site(r *request) (site *web.Site, ok bool) {
	site, err := web.Built()
	if err != nil {
		r.refuseCode(err)
	}
	return site, err == nil
}

// page answers GET /ui/ and below: the files of the page.
func (s *Server) page(r *request) {
	if s.cfg.Page.Off {
		r.refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	site, ok := s.site(r)
	if !ok {
		return
	}
	f, ok := site.Find(string(r.target.rest))
	if !ok {
		r.refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	h := &r.http.Response.Header
	for _, header := range web.Headers {
		h.Set(header[0], header[1])
	}
	h.SetContentType(f.Type)
	h.Set(fasthttp.HeaderCacheControl, f.Cache)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if r.http.Request.Header.HasAcceptEncoding("gzip") {
		h.SetContentEncoding("gzip")
		r.http.Response.SetBodyRaw(f.Zipped)
		return
	}
	r.http.Response.SetBodyRaw(f.Plain)
}

// tellPage tells the page, if the request is of it, which page this node has and which node
// this is.
func (r *request) tellPage() {
	s := r.server
	if s.cfg.Page.Off || len(r.http.Request.Header.Peek(headerPage)) == 0 {
		return
	}
	if site, err := web.Built(); err == nil {
		r.http.Response.Header.Set(headerPage, site.Hash())
	}
	r.http.Response.Header.Set(headerNode, s.node.NodeID())
}
