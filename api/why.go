package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
)

// whyNoWorker is the only reason that comes from this node's own table instead of the state.
const whyNoWorker = "no_worker"

// whyAnswer explains why a task is not running.
type whyAnswer struct {
	fsm.Why
	taskType string
	now      fsm.Stamp
	// noWorker says that no worker is asking for its type; lastAskedAt is when one last did, by T, 0 = not since this
	// node leads.
	noWorker    bool
	lastAskedAt int64
}

// explainTask answers GET /api/tasks/{id}/why.
func explainTask(r *request) {
	var a whyAnswer
	var bad *refuse.Refusal
	ok := r.read(func(m *fsm.Machine, now fsm.Stamp) {
		t := m.Get(r.taskID())
		if bad = r.refuseTask(m, t); bad == nil {
			a.Why, _ = m.Why(t.ID, now)
			r.sight().redactWhy(m, t, &a.Why)
			a.taskType, a.now = t.Type, now
		}
	})
	switch {
	case !ok:
	case bad != nil:
		r.refuse(bad)
	default:
		askedFor(r, &a)
		r.send(fasthttp.StatusOK, a.append(r.buffer()))
	}
}

// askedFor sets whether a worker asks for the type. Only the leader knows, because all claims go there.
func askedFor(r *request, a *whyAnswer) {
	if a.Status != fsm.StatusPending || !r.node().IsLeader() {
		return
	}
	agoMS, known, lately := r.core.presence.asked(a.taskType, r.timing.node)
	if known {
		a.lastAskedAt = a.now.T - agoMS
	}
	a.noWorker = !lately
}

// append appends the answer. The reason that no worker asks for the type comes before the task's own place in the
// queue.
func (a *whyAnswer) append(b []byte) []byte {
	b = append(b, `{"success":true,"reasons":[`...)
	start := len(b)
	queued := false
	for i := range a.Reasons {
		if queued = a.Reasons[i].Code == fsm.WhyQueued; queued {
			break // it is the only one
		}
		b = a.appendReason(jsonout.Comma(b, start), &a.Reasons[i])
	}
	if a.noWorker {
		b = a.appendNoWorker(jsonout.Comma(b, start))
	}
	if queued {
		b = a.appendQueued(jsonout.Comma(b, start))
	}
	b = jsonout.IntOrNull(b, `],"ahead":`, a.Ahead >= 0, a.Ahead)
	return append(b, '}')
}

// appendReason appends a reason of the state, without its closing brace, followed by the fields of its code.
func (a *whyAnswer) appendReason(b []byte, reason *fsm.WhyReason) []byte {
	words := func(text string) {
		b = jsonout.StringField(b, `{"code":`, string(reason.Code))
		b = jsonout.StringField(b, `,"message":`, text)
	}
	switch reason.Code {
	case fsm.WhyTypePaused:
		words("The type " + a.taskType + " is paused")
	case fsm.WhyLimitReached:
		words("As many tasks of the type " + a.taskType + " are claimed as its max_claimed allows")
		b = appendHolders(b, reason.Holders)
	case fsm.WhyRateLimited:
		words("The type " + a.taskType + " has used its rate_limit up" + until(reason.At))
		b = jsonout.TimeField(b, `,"at":`, reason.At)
	case fsm.WhySharePaused:
		words("The share key " + reason.ShareKey + " of the type " + a.taskType + " is paused")
		b = jsonout.StringField(b, `,"share_key":`, reason.ShareKey)
	case fsm.WhyShareLimitReached:
		words("As many tasks of the share key " + reason.ShareKey + " of the type " + a.taskType + " are claimed as its max_claimed, or the type's max_claimed_per_key, allows")
		b = jsonout.StringField(b, `,"share_key":`, reason.ShareKey)
		b = appendHolders(b, reason.Holders)
	case fsm.WhyShareRateLimited:
		words("The share key " + reason.ShareKey + " of the type " + a.taskType + " has used its rate_limit, or the type's rate_limit_per_key, up" + until(reason.At))
		b = jsonout.StringField(b, `,"share_key":`, reason.ShareKey)
		b = jsonout.TimeField(b, `,"at":`, reason.At)
	case fsm.WhyScheduled:
		words("It waits" + until(reason.At))
		b = jsonout.TimeField(b, `,"run_at":`, reason.At)
	case fsm.WhyBlocked:
		words(blockedWords(reason.Steps))
		b = jsonout.Strings(b, `,"steps":`, reason.Steps)
	case fsm.WhySignal:
		words("It waits for a signal" + until(reason.At))
		if reason.At != 0 {
			b = jsonout.TimeField(b, `,"at":`, reason.At)
		}
	case fsm.WhyGroupBehind:
		words("Task " + strconv.FormatUint(reason.TaskID, 10) + " of its group comes first")
		b = jsonout.UintField(b, `,"id":`, reason.TaskID)
	default:
		words(string(reason.Code))
	}
	return append(b, '}')
}

// until formats a time as " until ...", or "" for none.
func until(at int64) string {
	if at == 0 {
		return ""
	}
	quoted := jsonout.Time(nil, at)
	return " until " + string(quoted[1:len(quoted)-1])
}

// blockedWords describes a step that waits for others; the state names at most 100.
func blockedWords(steps []string) string {
	const most = 100
	switch n := len(steps); {
	case n == 0: // they are of types that the key does not have
		return "It waits until other steps are completed"
	case n == 1:
		return "It waits until the step " + steps[0] + " is completed"
	case n < most:
		return "It waits until " + strconv.Itoa(n) + " other steps are completed"
	}
	return "It waits until " + strconv.Itoa(most) + " or more other steps are completed"
}

func appendHolders(b []byte, holders []fsm.Holder) []byte {
	return jsonout.List(b, `,"holders":`, len(holders), func(b []byte, i int) []byte {
		b = jsonout.UintField(b, `{"task_id":`, holders[i].TaskID)
		return append(jsonout.StringOrNull(b, `,"worker_id":`, holders[i].WorkerID), '}')
	})
}

func (a *whyAnswer) appendNoWorker(b []byte) []byte {
	text := "No worker has asked for tasks of the type " + a.taskType + " since this leader leads"
	if a.lastAskedAt != 0 {
		text = "No worker asks for tasks of the type " + a.taskType + " any more"
	}
	b = jsonout.StringField(b, `{"code":"`+whyNoWorker+`","message":`, text)
	b = jsonout.TimeField(b, `,"last_asked_at":`, a.lastAskedAt)
	return append(b, '}')
}

func (a *whyAnswer) appendQueued(b []byte) []byte {
	text := "It is the next of its type"
	switch {
	case a.Ahead == 1:
		text = "One task of its type is claimed before it"
	case a.Ahead > 1:
		text = strconv.FormatInt(a.Ahead, 10) + " tasks of its type are claimed before it"
	}
	b = jsonout.StringField(b, `{"code":"queued","message":`, text)
	b = jsonout.IntField(b, `,"ahead":`, a.Ahead)
	return append(b, '}')
}
