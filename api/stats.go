package api

import (
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// Stats answers GET /api/stats.
func Stats(r *exchange.Request) {
	var st fsm.Stats
	if r.Read(func(m *fsm.Machine, now fsm.Stamp) { st = statsOf(r, m, now) }) {
		r.Send(fasthttp.StatusOK, appendStats(r.Body(), &st))
	}
}

// statsOf returns the counts of the key's task types. The bytes are the cluster's.
func statsOf(r *exchange.Request, m *fsm.Machine, now fsm.Stamp) fsm.Stats {
	st := m.Stats(now)
	if !r.Narrowed() {
		return st
	}
	st.Types = slices.DeleteFunc(slices.Clone(st.Types), func(t fsm.TypeStats) bool { return !r.MaySee(t.Type) })
	clear(st.Counts[:])
	st.OldestPendingAgeMS = 0
	for i := range st.Types {
		for status, n := range st.Types[i].Counts {
			st.Counts[status] += n
		}
		if view, ok := m.Type(st.Types[i].Type, now); ok {
			st.OldestPendingAgeMS = max(st.OldestPendingAgeMS, view.OldestPendingAgeMS)
		}
	}
	return st
}

func appendStats(b []byte, st *fsm.Stats) []byte {
	b = jsonout.UintField(b, `{"success":true,"index":`, st.Index)
	b = encode.Counts(b, `,"counts":`, &st.Counts)
	b = append(b, `,"types":{`...)
	start := len(b)
	for i := range st.Types {
		b = jsonout.String(jsonout.Comma(b, start), st.Types[i].Type)
		b = encode.Counts(b, ":", &st.Types[i].Counts)
	}
	b = jsonout.IntField(b, `},"bytes":`, st.Bytes)
	b = jsonout.IntField(b, `,"oldest_pending_age_ms":`, st.OldestPendingAgeMS)
	return append(b, '}')
}
