package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"
	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/web"
)

// root answers GET /: browsers are redirected to the page, other clients get a list of addresses. Addresses are
// relative, so that they also work behind a proxy that adds a path.
func (s *Server) root(r *request) {
	h := &r.http.Response.Header
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAccept)
	if !s.cfg.Page.Off && bytes.Contains(r.header(fasthttp.HeaderAccept), []byte("text/html")) {
		r.toPage(pageAddress)
		return
	}
	if !r.takeTurn() {
		return
	}
	b := jsonout.StringField(r.buffer(), `{"success":true,"name":"claimq","version":`, s.cfg.Version)
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

// site returns this binary's page. ok is false if the request was already answered.
func (s *Server) site(r *request) (site *web.Site, ok bool) {
	site, err := web.Built()
	if err != nil {
		r.refuseCode(err)
	}
	return site, err == nil
}

// page answers GET /ui/ and below with the files of the page.
func (s *Server) page(r *request) {
	if s.cfg.Page.Off {
		r.refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	site, ok := s.site(r)
	if !ok {
		return
	}
	f, ok := site.Find(string(r.rest()))
	if !ok {
		r.refuse(refuse.Because(wire.CodeNotFound))
		return
	}
	if !r.takeTurn() {
		return
	}
	h := &r.http.Response.Header
	for _, header := range web.Headers {
		h.Set(header[0], header[1])
	}
	h.Set(fasthttp.HeaderCacheControl, f.Cache)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if r.http.Request.Header.HasAcceptEncoding("gzip") {
		h.SetContentEncoding("gzip")
		r.sendShared(f.Type, f.Zipped)
		return
	}
	r.sendShared(f.Type, f.Plain)
}

// openAPISource is the source of the API's description.
//
//go:embed openapi.yaml
var openAPISource []byte

// openAPI answers GET /openapi.json.
func (s *Server) openAPI(r *request) {
	description, err := s.description()
	if err != nil {
		r.refuseCode(err)
		return
	}
	if r.takeTurn() {
		r.sendShared("application/json", description)
	}
}

// describe returns the API's description in JSON, with the version of this binary.
func describe(source []byte, version string) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	info, ok := document["info"].(map[string]any)
	if !ok {
		return nil, errors.New("openapi.yaml has no info")
	}
	if version != "" {
		info["version"] = version
	}
	description, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write openapi.json: %w", err)
	}
	return description, nil
}
