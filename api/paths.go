package api

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// target is the object of a request.
type target struct {
	call  *call // never nil after the lookup
	id    uint64
	rest  []byte     // still percent-encoded: the key of get_task_by_key, the type of get_type, the name of a schedule
	more  []byte     // still percent-encoded: the share key of set_share and delete_share
	allow string     // the path's methods, "" if the path does not exist
	queue *queueCall // of a call of SQS; otherwise nil
}

// methods are the calls of a path, by method.
type methods struct {
	get, post, put, patch, del *call // nil: the path does not have it
	options                    *call
	allow                      string // the value of Allow
}

const (
	// taskPath is the beginning of all paths of one task.
	taskPath = "/api/tasks/{id}"
	// sharesPath is the path of the shares of a type. The path of one share begins with it.
	sharesPath = "/api/types/{type}/shares"
)

// pathTable finds the calls of a path.
type pathTable struct {
	fixed  map[string]*methods // by path
	task   map[string]*methods // by the part after taskPath
	shares map[string]*methods // "": of sharesPath; "/": of the path of one share
	prefix []prefixPath

	options, none *call // of a known path, of an unknown path
}

// prefixPath is a path whose last part is a variable.
type prefixPath struct {
	prefix  []byte
	methods *methods
}

// newPaths groups calls by their paths.
func newPaths(calls []*call, options, none *call) pathTable {
	p := pathTable{fixed: make(map[string]*methods), task: make(map[string]*methods), shares: make(map[string]*methods), options: options, none: none}
	for _, c := range calls {
		if method, path, ok := strings.Cut(c.pattern, " "); ok {
			*p.at(path).of(method) = c
		}
	}
	for _, m := range p.all() {
		m.options = options
		m.setAllow()
	}
	return p
}

// at returns the methods of a route's path, creating them if necessary.
func (p *pathTable) at(path string) *methods {
	rest, ofTask := strings.CutPrefix(path, taskPath)
	before, _, variable := strings.Cut(path, "{")
	more, ofShares := strings.CutPrefix(path, sharesPath)
	switch {
	case ofShares:
		return made(p.shares, more[:min(len(more), 1)])
	case ofTask:
		return made(p.task, strings.TrimPrefix(rest, "/"))
	case !variable:
		return made(p.fixed, path)
	}
	for _, v := range p.prefix {
		if string(v.prefix) == before {
			return v.methods
		}
	}
	m := &methods{}
	p.prefix = append(p.prefix, prefixPath{prefix: []byte(before), methods: m})
	return m
}

func made(in map[string]*methods, path string) *methods {
	m := in[path]
	if m == nil {
		m = &methods{}
		in[path] = m
	}
	return m
}

func (p *pathTable) all() []*methods {
	var all []*methods
	for _, in := range []map[string]*methods{p.fixed, p.task, p.shares} {
		for _, m := range in {
			all = append(all, m)
		}
	}
	for _, v := range p.prefix {
		all = append(all, v.methods)
	}
	return all
}

// of returns a pointer to the call of a method, nil if no call can have that method.
func (m *methods) of(method string) **call {
	switch method {
	case fasthttp.MethodGet, fasthttp.MethodHead:
		return &m.get
	case fasthttp.MethodPost:
		return &m.post
	case fasthttp.MethodPut:
		return &m.put
	case fasthttp.MethodPatch:
		return &m.patch
	case fasthttp.MethodDelete:
		return &m.del
	}
	return nil
}

func (m *methods) setAllow() {
	var allow []string
	for _, method := range []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPut, fasthttp.MethodPatch, fasthttp.MethodDelete} {
		if *m.of(method) != nil {
			allow = append(allow, method)
		}
	}
	m.allow = strings.Join(append(allow, fasthttp.MethodOptions), ", ")
}

// find finds the call of a method and a path as sent. It refuses with not_found or method_not_allowed, or because an id
// is invalid.
func (p *pathTable) find(method, path []byte) (target, *refuse.Refusal) {
	if m, ok := p.fixed[string(path)]; ok {
		return m.pick(method, p.none)
	}
	if rest, ok := bytes.CutPrefix(path, []byte("/api/types/")); ok {
		if taskType, more, ok := bytes.Cut(rest, []byte("/shares")); ok && (len(more) == 0 || more[0] == '/') {
			t, bad := p.shares[string(more[:min(len(more), 1)])].pick(method, p.none)
			t.rest, t.more = taskType, bytes.TrimPrefix(more, []byte{'/'})
			return t, bad
		}
	}
	for i := range p.prefix {
		if rest, ok := bytes.CutPrefix(path, p.prefix[i].prefix); ok {
			t, bad := p.prefix[i].methods.pick(method, p.none)
			t.rest = rest
			return t, bad
		}
	}
	if rest, ok := bytes.CutPrefix(path, []byte("/api/tasks/")); ok {
		return p.findTask(method, rest)
	}
	return target{call: p.none}, refuse.Because(wire.CodeNotFound)
}

// findTask finds the call of the part after /api/tasks/: an id, and perhaps more.
func (p *pathTable) findTask(method, rest []byte) (target, *refuse.Refusal) {
	idText, more, _ := bytes.Cut(rest, []byte{'/'})
	m, ok := p.task[string(more)]
	if !ok || len(more) == 0 && len(idText) != len(rest) {
		return target{call: p.none}, refuse.Because(wire.CodeNotFound)
	}
	t, bad := m.pick(method, p.none)
	if bad != nil || t.call == p.options {
		return t, bad
	}
	if t.id, ok = parseID(idText); !ok {
		return t, refuse.Param("id", "Invalid id: must be an integer from 1 to 9007199254740991, in digits")
	}
	return t, nil
}

// pick returns the call of the method, or none if the path does not have it.
func (m *methods) pick(method []byte, none *call) (target, *refuse.Refusal) {
	t := target{call: none, allow: m.allow}
	if string(method) == fasthttp.MethodOptions {
		t.call = m.options
		return t, nil
	}
	if c := m.of(string(method)); c != nil && *c != nil {
		t.call = *c
		return t, nil
	}
	return t, refuse.Because(wire.CodeMethodNotAllowed)
}

// options answers with the methods of a path.
func (r *request) options() {
	r.http.Response.Header.Set(fasthttp.HeaderAllow, r.target.allow)
	r.http.SetStatusCode(fasthttp.StatusNoContent)
}

func parseID(b []byte) (uint64, bool) {
	id, ok := wire.ParseInteger(string(b), 1, wire.IDMax)
	return uint64(id), ok
}
