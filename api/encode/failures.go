package encode

import (
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm/errorgroup"
)

// Failures appends groups of failed tasks, as a list.
func Failures(b []byte, groups []*errorgroup.Group) []byte {
	b = append(b, '[')
	start := len(b)
	for _, g := range groups {
		b = append(jsonout.Comma(b, start), `{"group":"`...)
		b = append(append(b, g.ID.String()...), `","task_type":`...)
		b = append(jsonout.String(b, g.Type), `,"signature":`...)
		b = append(jsonout.String(b, g.Signature), `,"example":`...)
		b = append(jsonout.String(b, g.Example), `,"count":`...)
		b = append(strconv.AppendInt(b, int64(g.Count), 10), `,"first_at":`...)
		b = append(jsonout.Time(b, g.FirstAt), `,"last_at":`...)
		b = append(jsonout.Time(b, g.LastAt), `,"ids":[`...)
		ids := len(b)
		for _, id := range g.IDs {
			b = strconv.AppendUint(jsonout.Comma(b, ids), id, 10)
		}
		b = append(b, "]}"...)
	}
	return append(b, ']')
}
