package encode

import (
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// Counts appends a count for every status.
func Counts(b []byte, counts *[fsm.StatusCancelled + 1]int64) []byte {
	b = append(b, '{')
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		if s > fsm.StatusPending {
			b = append(b, ',')
		}
		b = jsonout.String(b, s.String())
		b = append(b, ':')
		b = strconv.AppendInt(b, counts[s], 10)
	}
	return append(b, '}')
}
