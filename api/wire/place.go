package wire

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Place is a place of the trail: INDEX.SUB. Places grow with each entry of the log, and jump
// where a cluster begins and where a backup is restored: INDEX is no index of the log.
type Place struct {
	Index uint64
	Sub   uint32
}

// WholeEntry as the Sub of a place stands for the end of its entry. It is written as INDEX
// alone.
const WholeEntry = math.MaxUint32

// ParsePlace reads a place: INDEX.SUB, or INDEX, which is behind all events of that entry.
func ParsePlace(text string) (p Place, ok bool) {
	p.Sub = WholeEntry
	indexText, subText, hasSub := strings.Cut(text, ".")
	if hasSub {
		sub, err := strconv.ParseUint(subText, 10, 32)
		if err != nil {
			return p, false
		}
		p.Sub = uint32(sub)
	}
	index, err := strconv.ParseUint(indexText, 10, 64)
	p.Index = index
	return p, err == nil && p.String() == text
}

// Append appends the place as ParsePlace reads it.
func (p Place) Append(b []byte) []byte {
	b = strconv.AppendUint(b, p.Index, 10)
	if p.Sub == WholeEntry {
		return b
	}
	return strconv.AppendUint(append(b, '.'), uint64(p.Sub), 10)
}

// String is the place as ParsePlace reads it.
func (p Place) String() string { return string(p.Append(nil)) }

// Compare orders places.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Index, q.Index), cmp.Compare(p.Sub, q.Sub))
}
