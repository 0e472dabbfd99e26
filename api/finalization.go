package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
)

// Finalization answers GET /api/tasks/{id}/finalization.
func Finalization(r *exchange.Request) {
	var view fsm.FinalizationView
	var now fsm.Stamp
	var bad *refuse.Refusal
	ok := r.Read(func(m *fsm.Machine, stamp fsm.Stamp) {
		if bad = r.RefuseTask(m, m.Get(r.Target.ID)); bad == nil {
			view, _ = m.Finalization(r.Target.ID, stamp)
			now = stamp
		}
	})
	switch {
	case !ok:
	case bad != nil:
		r.Refuse(bad)
	default:
		r.Send(fasthttp.StatusOK, appendFinalization(r.Body(), &view, now))
	}
}

func appendFinalization(b []byte, v *fsm.FinalizationView, now fsm.Stamp) []byte {
	b = jsonout.List(b, `{"success":true,"attempts":`, len(v.Attempts), func(b []byte, i int) []byte {
		return appendFinalizationAttempt(b, &v.Attempts[i])
	})
	b = jsonout.StringOrNull(b, `,"claimed_by":`, v.ClaimedBy)
	expiresAt := int64(0)
	if v.ClaimedBy != "" {
		expiresAt = now.T + v.LeftMS
	}
	return append(jsonout.TimeField(b, `,"claim_expires_at":`, expiresAt), '}')
}

func appendFinalizationAttempt(b []byte, a *fsm.FinalizationAttempt) []byte {
	b = jsonout.StringField(b, `{"processor_id":`, a.ProcessorID)
	b = jsonout.BoolField(b, `,"claimed":`, a.Outcome.Claimed())
	b = jsonout.StringOrNull(b, `,"already_claimed_by":`, a.Holder)
	b = jsonout.StringOrNull(b, `,"reason":`, callbody.FinalizationReason(a.Outcome))
	b = jsonout.WordField(b, `,"task_state":`, a.State.String())
	b = jsonout.WordField(b, `,"message":`, encode.FinalizationMessage(a.Outcome))
	return append(jsonout.TimeField(b, `,"attempted_at":`, a.At), '}')
}
