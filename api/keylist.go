package api

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
)

// keyUse is when and from where a key was used.
type keyUse struct {
	at   time.Time
	from netip.Addr // the zero value: unknown
}

// keyUseInterval is how exact the time of a key's last use is: noting each would cost
// every request.
const keyUseInterval = time.Second

// used notes that the key was used.
func (k *apiKey) used(now time.Time, from netip.Addr) {
	last := k.last.Load()
	if last == nil || now.Sub(last.at) >= keyUseInterval {
		k.last.CompareAndSwap(last, &keyUse{now, from})
	}
}

// keyList answers GET /api/keys: the keys of this node, by name, and when each was last
// used here. What they hash to is told to nobody.
func (r *request) keyList() {
	after, limit, bad := parseKeyList(r.query)
	if bad != nil {
		r.refuse(bad)
		return
	}
	s := r.server
	var keys []*apiKey
	if t := s.keys.Load(); t != nil {
		from, found := slices.BinarySearchFunc(t.sorted, after, func(k *apiKey, name string) int { return strings.Compare(k.name, name) })
		if found {
			from++
		}
		keys = t.sorted[from:]
	}
	more := len(keys) > limit
	if more {
		keys = keys[:limit]
	}
	b := jsonout.String(append(r.body(), `{"success":true,"node_id":`...), s.node.NodeID())
	b = jsonout.Time(append(b, `,"since":`...), s.begun.UnixMilli())
	b = append(b, `,"keys":[`...)
	start := len(b)
	for _, k := range keys {
		b = k.append(jsonout.Comma(b, start))
	}
	b = append(b, `],"next":`...)
	if more {
		b = jsonout.String(b, keys[limit-1].name)
	} else {
		b = append(b, "null"...)
	}
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// parseKeyList reads the query of GET /api/keys.
func parseKeyList(params []param) (after string, limit int, bad *refuse.Refusal) {
	limit = bound.PageDefault
	for _, p := range params {
		switch p.name {
		case "after":
			if after = p.value; !keyNamePattern.MatchString(after) {
				return "", 0, badParam("after", "the name of a key, 1 to 64 of A-Z a-z 0-9 _ . -,")
			}
		case "limit":
			n, err := strconv.Atoi(p.value)
			if err != nil || n < 1 || n > keyPageMax {
				return "", 0, badParam("limit", "an integer from 1 to "+strconv.Itoa(keyPageMax))
			}
			limit = n
		default:
			return "", 0, refuseQuery([]param{p})
		}
	}
	return after, limit, nil
}

// keyPageMax bounds the keys of an answer, so that it stays below 8 MiB.
const keyPageMax = 1_000

// append appends the key as operators see it.
func (k *apiKey) append(b []byte) []byte {
	b = jsonout.String(append(b, `{"name":`...), k.name)
	b = appendTexts(append(b, `,"roles":`...), k.roles.names())
	b = appendTexts(append(b, `,"task_types":`...), k.types)
	b = strconv.AppendInt(append(b, `,"rate_limit_per_minute":`...), k.rate(), 10)
	b = append(b, `,"expires_at":`...)
	if k.expires.IsZero() {
		b = append(b, "null"...)
	} else {
		b = jsonout.Time(b, k.expires.UnixMilli())
	}
	addresses := make([]string, len(k.addresses))
	for i, p := range k.addresses {
		if addresses[i] = p.String(); p.IsSingleIP() {
			addresses[i] = p.Addr().String()
		}
	}
	b = appendTexts(append(b, `,"addresses":`...), addresses)
	last := k.last.Load()
	if last == nil {
		return append(b, `,"last_used_at":null,"last_used_from":null}`...)
	}
	b = jsonout.Time(append(b, `,"last_used_at":`...), last.at.UnixMilli())
	b = append(b, `,"last_used_from":`...)
	if !last.from.IsValid() {
		return append(b, "null}"...)
	}
	return append(jsonout.String(b, last.from.String()), '}')
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
