package api

import (
	"strconv"

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
	if !r.NoParams() {
		return
	}
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
	b = append(b, `{"success":true,"attempts":[`...)
	for i := range v.Attempts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFinalizationAttempt(b, &v.Attempts[i])
	}
	b = append(b, `],"claimed_by":`...)
	b = jsonout.StringOrNull(b, v.ClaimedBy)
	b = append(b, `,"claim_expires_at":`...)
	if v.ClaimedBy == "" {
		b = append(b, "null"...)
	} else {
		b = jsonout.Time(b, now.T+v.LeftMS)
	}
	return append(b, '}')
}

func appendFinalizationAttempt(b []byte, a *fsm.FinalizationAttempt) []byte {
	b = append(b, `{"processor_id":`...)
	b = jsonout.String(b, a.ProcessorID)
	b = append(b, `,"claimed":`...)
	b = strconv.AppendBool(b, a.Outcome.Claimed())
	b = append(b, `,"already_claimed_by":`...)
	b = jsonout.StringOrNull(b, a.Holder)
	b = append(b, `,"reason":`...)
	b = jsonout.StringOrNull(b, callbody.FinalizationReason(a.Outcome))
	b = append(b, `,"task_state":"`...)
	b = append(b, a.State.String()...)
	b = append(b, `","message":"`...)
	b = append(b, encode.FinalizationMessage(a.Outcome)...)
	b = append(b, `","attempted_at":`...)
	return append(jsonout.Time(b, a.At), '}')
}
