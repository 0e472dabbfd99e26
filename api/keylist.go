package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
)

// keyList answers GET /api/keys: the keys of this node, by name, and when each was last
// used here. What they hash to is told to nobody.
func (s *Server) keyList(r *exchange.Request) {
	after, limit, bad := parseKeyList(r)
	if bad != nil {
		r.Refuse(bad)
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
	b := jsonout.String(append(r.Body(), `{"success":true,"node_id":`...), s.cfg.Node.NodeID())
	b = jsonout.Time(append(b, `,"since":`...), s.host.Begun.UnixMilli())
	b = append(b, `,"keys":[`...)
	start := len(b)
	for _, k := range keys {
		b = appendKey(jsonout.Comma(b, start), k)
	}
	b = append(b, `],"next":`...)
	if more {
		b = jsonout.String(b, keys[limit-1].Name)
	} else {
		b = append(b, "null"...)
	}
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// parseKeyList reads the query of GET /api/keys.
func parseKeyList(r *exchange.Request) (after string, limit int, bad *refuse.Refusal) {
	limit = bound.PageDefault
	bad = r.EachParam(func(p exchange.Param) *refuse.Refusal {
		switch p.Name {
		case "after":
			if after = p.Value; !keyring.NamePattern.MatchString(after) {
				return badParam("after", "the name of a key, 1 to 64 of A-Z a-z 0-9 _ . -")
			}
		case "limit":
			return setCount(&limit, p, keyPageMax)
		default:
			return exchange.UnknownParam(p.Name)
		}
		return nil
	})
	return after, limit, bad
}

// keyPageMax bounds the keys of an answer, so that it stays below 8 MiB.
const keyPageMax = 1_000

// appendKey appends the key as operators see it.
func appendKey(b []byte, k *keyring.Caller) []byte {
	b = jsonout.String(append(b, `{"name":`...), k.Name)
	b = appendTexts(append(b, `,"roles":`...), k.Roles.Names())
	b = appendTexts(append(b, `,"task_types":`...), k.Types)
	b = strconv.AppendInt(append(b, `,"rate_limit_per_minute":`...), k.Rate(), 10)
	b = append(b, `,"expires_at":`...)
	if k.Expires.IsZero() {
		b = append(b, "null"...)
	} else {
		b = jsonout.Time(b, k.Expires.UnixMilli())
	}
	addresses := make([]string, len(k.Addresses))
	for i, p := range k.Addresses {
		if addresses[i] = p.String(); p.IsSingleIP() {
			addresses[i] = p.Addr().String()
		}
	}
	b = appendTexts(append(b, `,"addresses":`...), addresses)
	last := k.Last.Load()
	if last == nil {
		return append(b, `,"last_used_at":null,"last_used_from":null}`...)
	}
	b = jsonout.Time(append(b, `,"last_used_at":`...), last.At.UnixMilli())
	b = append(b, `,"last_used_from":`...)
	if !last.From.IsValid() {
		return append(b, "null}"...)
	}
	return append(jsonout.String(b, last.From.String()), '}')
}

// appendTexts appends an array of texts.
func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonout.String(b, t)
	}
	return append(b, ']')
}
