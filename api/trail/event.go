package trail

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/event"
)

// ParsePlace parses a place of the trail.
func ParsePlace(text string) (at event.Pos, ok bool) {
	p, ok := wire.ParsePlace(text)
	return event.Pos(p), ok
}

// AppendPlace appends a place in the form that ParsePlace parses.
func AppendPlace(b []byte, at event.Pos) []byte { return wire.Place(at).Append(b) }

// After reports whether place a comes after b.
func After(a, b event.Pos) bool { return a.Compare(b) > 0 }

// placeBefore returns the last place before at.
func placeBefore(at event.Pos) event.Pos {
	switch {
	case at.Sub > 0:
		return event.Pos{Index: at.Index, Sub: at.Sub - 1}
	case at.Index > 0:
		return event.Pos{Index: at.Index - 1, Sub: wire.WholeEntry}
	}
	return event.Pos{}
}

// AppendEvent appends an event in the contract's form.
func AppendEvent(b []byte, e *event.Event) []byte {
	b = append(AppendEventHead(b, e), e.Kind.String()...)
	b = jsonout.StringOrNull(b, `","worker_id":`, e.WorkerID)
	b = jsonout.UintOrNull(b, `,"claim_token":`, e.Token)
	if e.Attempt == 0 { // not about a worker's claim: a claim of a finalization is not an attempt
		b = append(b, `,"attempt":null`...)
	} else {
		b = jsonout.IntField(b, `,"attempt":`, int64(e.Attempt))
	}
	b = jsonout.StringField(b, `,"message":`, e.Message)
	return append(b, '}')
}

// AppendEventHead appends the beginning of an event, up to its name.
func AppendEventHead(b []byte, e *event.Event) []byte {
	b = jsonout.UintField(b, `{"index":`, e.Index)
	b = jsonout.UintField(b, `,"sub":`, uint64(e.Sub))
	b = jsonout.TimeField(b, `,"time":`, e.T)
	b = jsonout.UintOrNull(b, `,"task_id":`, e.TaskID)
	return append(b, `,"event":"`...)
}

// selects reports whether q asks for the event.
func selects(q *event.Query, e *event.Event) bool {
	return (q.Type == "" || q.Type == e.Type) && (q.WorkerID == "" || q.WorkerID == e.WorkerID) && q.Kinds.Has(e.Kind)
}

// Filtered reports whether q leaves out any events.
func Filtered(q *event.Query) bool { return q.Type != "" || q.WorkerID != "" || q.Kinds != 0 }
