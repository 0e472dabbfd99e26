package encode

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// Counts appends a field with the count of every status.
func Counts(b []byte, name string, counts *[fsm.StatusCancelled + 1]int64) []byte {
	b = append(append(b, name...), '{')
	start := len(b)
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		b = jsonout.String(jsonout.Comma(b, start), s.String())
		b = jsonout.IntField(b, ":", counts[s])
	}
	return append(b, '}')
}
