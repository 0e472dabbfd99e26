package api

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
)

// keyList answers GET /api/keys: the keys of this node, by name, and when each was last used here. Hashes are not
// shown.
func (s *Server) keyList(r *exchange.Request) {
	after, limit, bad := parseKeyList(r)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	if !r.TakeTurn() {
		return
	}
	var keys []*keyring.Caller
	if t := s.host.Keys.Load(); t != nil {
		from, found := slices.BinarySearchFunc(t.Sorted, after, func(k *keyring.Caller, name string) int { return strings.Compare(k.Name, name) })
		if found {
			from++
		}
		keys = t.Sorted[from:]
	}
	more := len(keys) > limit
	if more {
		keys = keys[:limit]
	}
	b := jsonout.StringField(r.Body(), `{"success":true,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.TimeField(b, `,"since":`, s.host.Begun.UnixMilli())
	b = jsonout.List(b, `,"keys":`, len(keys), func(b []byte, i int) []byte { return appendKey(b, keys[i]) })
	next := ""
	if more {
		next = keys[limit-1].Name
	}
	b = jsonout.StringOrNull(b, `,"next":`, next)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// parseKeyList reads the query of GET /api/keys.
func parseKeyList(r *exchange.Request) (after string, limit int, bad *refuse.Refusal) {
	limit = bound.PageDefault
	bad = r.ReadParams(exchange.Params{
		"after": textParam(&after, "the name of a key, 1 to 64 of A-Z a-z 0-9 _ . -", keyring.NamePattern.MatchString),
		"limit": countParam(&limit, keyPageMax),
	})
	return after, limit, bad
}

// keyPageMax bounds the keys of an answer, so that it stays below 8 MiB.
const keyPageMax = 1_000

// appendKey appends a key as operators see it.
func appendKey(b []byte, k *keyring.Caller) []byte {
	b = jsonout.StringField(b, `{"name":`, k.Name)
	b = jsonout.Strings(b, `,"roles":`, k.Roles.Names())
	b = jsonout.Strings(b, `,"task_types":`, k.Types)
	b = jsonout.IntField(b, `,"rate_limit_per_minute":`, k.Rate())
	b = jsonout.Moment(b, `,"expires_at":`, k.Expires)
	addresses := make([]string, len(k.Addresses))
	for i, p := range k.Addresses {
		if addresses[i] = p.String(); p.IsSingleIP() {
			addresses[i] = p.Addr().String()
		}
	}
	b = jsonout.Strings(b, `,"addresses":`, addresses)
	last := k.Last.Load()
	if last == nil {
		return append(b, `,"last_used_at":null,"last_used_from":null}`...)
	}
	b = jsonout.TimeField(b, `,"last_used_at":`, last.At.UnixMilli())
	b = append(b, `,"last_used_from":`...)
	if !last.From.IsValid() {
		return append(b, "null}"...)
	}
	return append(jsonout.String(b, last.From.String()), '}')
}
