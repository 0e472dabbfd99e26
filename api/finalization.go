package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
)

// getFinalization answers GET /api/tasks/{id}/finalization.
func getFinalization(r *request) {
	var view fsm.FinalizationView
	var now fsm.Stamp
	var bad *refuse.Refusal
	ok := r.read(func(m *fsm.Machine, stamp fsm.Stamp) {
		if bad = r.refuseTask(m, m.Get(r.taskID())); bad == nil {
			view, _ = m.Finalization(r.taskID(), stamp)
			now = stamp
		}
	})
	switch {
	case !ok:
	case bad != nil:
		r.refuse(bad)
	default:
		r.send(fasthttp.StatusOK, appendFinalization(r.buffer(), &view, now))
	}
}

// finalizationCall is taskCall for calls about the finalization of a task.
func finalizationCall[B any, P taskBody[B]](r *request) {
	if cmd, p, ok := act(r, codec.OfTask(P(new(B)), r.taskID())); ok {
		r.core.metrics.Finalizations.Observe(r.timing.start, cmd, p.Result.Parent)
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
	b = jsonout.StringOrNull(b, `,"reason":`, codec.FinalizationReason(a.Outcome))
	b = jsonout.WordField(b, `,"task_state":`, a.State.String())
	b = jsonout.WordField(b, `,"message":`, codec.FinalizationMessage(a.Outcome))
	return append(jsonout.TimeField(b, `,"attempted_at":`, a.At), '}')
}
