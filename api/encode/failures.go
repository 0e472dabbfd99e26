package encode

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm/errorgroup"
)

// Failures appends groups of failed tasks, as a list.
func Failures(b []byte, groups []*errorgroup.Group) []byte {
	return jsonout.List(b, "", len(groups), func(b []byte, i int) []byte {
		g := groups[i]
		b = jsonout.WordField(b, `{"group":`, g.ID.String())
		b = jsonout.StringField(b, `,"task_type":`, g.Type)
		b = jsonout.StringField(b, `,"signature":`, g.Signature)
		b = jsonout.StringField(b, `,"example":`, g.Example)
		b = jsonout.IntField(b, `,"count":`, int64(g.Count))
		b = jsonout.TimeField(b, `,"first_at":`, g.FirstAt)
		b = jsonout.TimeField(b, `,"last_at":`, g.LastAt)
		return append(jsonout.Uints(b, `,"ids":`, g.IDs), '}')
	})
}
