package exchange

import (
	"bytes"
	"net/url"
	"unicode/utf8"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
)

// SplitURI splits a request's target into path and query. The scheme and host of an absolute form, and a fragment,
// are cut off.
func SplitURI(uri []byte) (path, query []byte) {
	if len(uri) > 0 && uri[0] != '/' {
		if _, after, ok := bytes.Cut(uri, []byte("://")); ok {
			uri = after[min(len(after), max(0, bytes.IndexByte(after, '/'))):]
		}
	}
	uri, _, _ = bytes.Cut(uri, []byte{'#'})
	path, query, _ = bytes.Cut(uri, []byte{'?'})
	return path, query
}

// printable reports whether a target has no spaces or control characters, so that it can be sent in a header.
func printable(uri []byte) bool {
	for _, c := range uri {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// Param is one query parameter, decoded.
type Param struct{ Name, Value string }

// Parameters that may be given several times.
const (
	ParamLabel = "label"
	ParamEvent = "event"
)

// parseQuery decodes a query strictly: each parameter once, except label and event, with valid percent-encoding and
// UTF-8. A name without = has the value "".
func parseQuery(query []byte) ([]Param, *refuse.Refusal) {
	var params []Param
	for len(query) > 0 {
		var part []byte
		part, query, _ = bytes.Cut(query, []byte{'&'})
		if len(part) == 0 {
			continue
		}
		rawName, rawValue, _ := bytes.Cut(part, []byte{'='})
		name, ok := Unescape(rawName, true)
		if !ok {
			return nil, refuse.Param("", "A query parameter's name is not percent-encoded UTF-8")
		}
		value, ok := Unescape(rawValue, true)
		if !ok {
			return nil, refuse.Param(jsonout.Shorten(name), "Invalid "+jsonout.Shorten(name)+": must be percent-encoded UTF-8")
		}
		for _, p := range params {
			if p.Name == name && name != ParamLabel && name != ParamEvent {
				return nil, refuse.Param(jsonout.Shorten(name), "Repeated query parameter: "+jsonout.Shorten(name))
			}
		}
		params = append(params, Param{name, value})
	}
	return params, nil
}

// Unescape decodes percent-encoding and, with plus, + as a space. ok is false for an invalid encoding or invalid
// UTF-8.
func Unescape(b []byte, plus bool) (s string, ok bool) {
	unescape := url.PathUnescape
	if plus {
		unescape = url.QueryUnescape
	}
	s, err := unescape(string(b))
	return s, err == nil && utf8.ValidString(s)
}

// NoParams refuses a request with parameters if its call has none. ok is false if it was refused.
func (r *Request) NoParams() (ok bool) {
	bad := refuseQuery(r.query)
	if bad != nil {
		r.Refuse(bad)
	}
	return bad == nil
}

// Params are the parameters of a call, with the function that reads each of them.
type Params map[string]func(p Param) *refuse.Refusal

// ReadParams reads the call's own parameters in turn, until one is refused.
func (r *Request) ReadParams(known Params) *refuse.Refusal {
	for _, p := range r.query {
		read := known[p.Name]
		if read == nil {
			return unknownParam(p.Name)
		}
		if bad := read(p); bad != nil {
			return bad
		}
	}
	return nil
}

// refuseQuery refuses the first parameter of a call that has none.
func refuseQuery(params []Param) *refuse.Refusal {
	if len(params) == 0 {
		return nil
	}
	return unknownParam(params[0].Name)
}

// unknownParam refuses a parameter that the call does not have.
func unknownParam(name string) *refuse.Refusal {
	return refuse.New("invalid_request", "Unknown query parameter: "+jsonout.Shorten(name),
		"Remove it, or check its spelling").At(jsonout.Shorten(name))
}
