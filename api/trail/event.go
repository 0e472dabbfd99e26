package trail

import (
	"math"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm/event"
)

// WholeEntry as the number of a place stands for the end of its entry.
const WholeEntry = math.MaxUint32

// ParsePlace reads a place of the trail: INDEX.SUB, or INDEX, which is behind
// all events of that entry.
func ParsePlace(text string) (at event.Pos, ok bool) {
	at.Sub = WholeEntry
	indexText, subText, hasSub := strings.Cut(text, ".")
	if hasSub {
		sub, err := strconv.ParseUint(subText, 10, 32)
		if err != nil {
			return at, false
		}
		at.Sub = uint32(sub)
	}
	index, err := strconv.ParseUint(indexText, 10, 64)
	at.Index = index
	return at, err == nil && string(AppendPlace(nil, at)) == text
}

// AppendPlace appends a place as parsePlace reads it.
func AppendPlace(b []byte, at event.Pos) []byte {
	b = strconv.AppendUint(b, at.Index, 10)
	if at.Sub == WholeEntry {
		return b
	}
	return strconv.AppendUint(append(b, '.'), uint64(at.Sub), 10)
}

// Behind reports whether the place a comes after b.
func Behind(a, b event.Pos) bool {
	return a.Index > b.Index || a.Index == b.Index && a.Sub > b.Sub
}

// Before returns a place that has everything before at behind it, and not at.
func Before(at event.Pos) event.Pos {
	switch {
	case at.Sub > 0:
		return event.Pos{Index: at.Index, Sub: at.Sub - 1}
	case at.Index > 0:
		return event.Pos{Index: at.Index - 1, Sub: WholeEntry}
	}
	return event.Pos{}
}

// AppendEvent appends an event as the contract shows it.
func AppendEvent(b []byte, e *event.Event) []byte {
	b = append(AppendEventHead(b, e), e.Kind.String()...)
	b = jsonout.StringOrNull(b, `","worker_id":`, e.WorkerID)
	b = jsonout.UintOrNull(b, `,"claim_token":`, e.Token)
	if e.Attempt == 0 { // about no claim of a worker: that of a parent's finalization is no attempt
		b = append(b, `,"attempt":null`...)
	} else {
		b = jsonout.IntField(b, `,"attempt":`, int64(e.Attempt))
	}
	b = jsonout.StringField(b, `,"message":`, e.Message)
	return append(b, '}')
}

// AppendEventHead appends an event up to its name.
func AppendEventHead(b []byte, e *event.Event) []byte {
	b = jsonout.UintField(b, `{"index":`, e.Index)
	b = jsonout.UintField(b, `,"sub":`, uint64(e.Sub))
	b = jsonout.TimeField(b, `,"time":`, e.T)
	b = jsonout.UintOrNull(b, `,"task_id":`, e.TaskID)
	return append(b, `,"event":"`...)
}

// selects reports whether the event is one that q asks for.
func selects(q *event.Query, e *event.Event) bool {
	return (q.Type == "" || q.Type == e.Type) && (q.WorkerID == "" || q.WorkerID == e.WorkerID) && q.Kinds.Has(e.Kind)
}

// Filtered reports whether q leaves any event out.
func Filtered(q *event.Query) bool { return q.Type != "" || q.WorkerID != "" || q.Kinds != 0 }
