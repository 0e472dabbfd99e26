package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// statsTypesMax bounds the types in the answer of GET /api/stats to 1.4 MB, because answers from the leader to a
// follower are bounded.
const statsTypesMax = 10_000

// Stats answers GET /api/stats. The bytes are the whole cluster's; everything else covers only the key's types.
func Stats(r *exchange.Request) {
	q := fsm.TypesQuery{Limit: statsTypesMax}
	if r.Narrowed() {
		q.See = r.MaySee
	}
	if found, at, ok := findTypes(r, q); ok {
		r.Send(fasthttp.StatusOK, appendStats(r.Body(), &found, at))
	}
}

func appendStats(b []byte, found *fsm.TypesFound, at typesAt) []byte {
	b = jsonout.UintField(b, `{"success":true,"index":`, at.index)
	b = encode.Counts(b, `,"counts":`, &found.All.Counts)
	b = append(b, `,"types":{`...)
	start := len(b)
	for i := range found.Types {
		if t := &found.Types[i]; t.Counts != (fsm.TypeView{}).Counts {
			b = jsonout.String(jsonout.Comma(b, start), t.Type)
			b = encode.Counts(b, ":", &t.Counts)
		}
	}
	b = jsonout.IntField(b, `},"types_left_out":`, int64(max(found.Matched-len(found.Types), 0)))
	b = jsonout.IntField(b, `,"bytes":`, at.bytes)
	b = jsonout.IntField(b, `,"oldest_pending_age_ms":`, found.All.OldestPendingAgeMS)
	return append(b, '}')
}
