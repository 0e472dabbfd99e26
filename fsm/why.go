package fsm

import (
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Why explains why a task is not running, at one index.
type Why struct {
	Status  record.Status
	Reasons []WhyReason
	// Ahead counts the claimable tasks of its type and share key that a claim by priority takes
	// before it, regardless of the type's pause and limits; -1 if its own status or group keeps the
	// task from being claimed.
	Ahead int64
}

// WhyCode names a reason. The values are part of the API.
type WhyCode string

// The reasons that the state knows. The API adds no_worker.
const (
	WhyTypePaused        WhyCode = "type_paused"
	WhyLimitReached      WhyCode = "limit_reached"       // Holders
	WhyRateLimited       WhyCode = "rate_limited"        // At
	WhySharePaused       WhyCode = "share_paused"        // ShareKey
	WhyShareLimitReached WhyCode = "share_limit_reached" // ShareKey; Holders with it
	WhyShareRateLimited  WhyCode = "share_rate_limited"  // ShareKey; At
	WhyScheduled         WhyCode = "scheduled"           // At
	WhyBlocked           WhyCode = "blocked"             // Steps
	WhySignal            WhyCode = "signal"              // At: it fails then; 0 = it begins to wait once it is not blocked
	WhyGroupBehind       WhyCode = "group_behind"        // TaskID
	WhyQueued            WhyCode = "queued"              // Why.Ahead
)

// WhyReason is one reason with its details.
type WhyReason struct {
	Code     WhyCode
	ShareKey string
	At       int64    // by T: when the reason ends, if nothing else changes
	TaskID   uint64   // the task of its group that must end first
	Holders  []Holder // at most whyHoldersMax, by task id
	// Steps are the names of the dependencies that have not completed: at most whyStepsMax,
	// in the plan's order.
	Steps []string
}

// whyStepsMax bounds WhyReason.Steps.
const whyStepsMax = 100

const (
	// whyHoldersMax bounds WhyReason.Holders.
	whyHoldersMax = 100
	// whyClaimsMax bounds the claims of the type, newest first, among which holders are
	// looked for.
	whyClaimsMax = 2000
)

// Holder is one claim of a type.
type Holder struct {
	TaskID   uint64
	WorkerID string
}

// Why explains why the task is not running; ok is false if it does not exist. A claimed or
// ended task, or a running parent, has no reasons. Each reason would prevent a claim even
// without the others. They are ordered: what the task itself waits for, its group, its
// type. A task that only has to wait its turn is queued, even if it is next.
func (m *Machine) Why(id uint64, now record.Stamp) (w Why, ok bool) {
	t := m.Get(id)
	if t == nil {
		return Why{}, false
	}
	w = Why{Status: t.Status, Ahead: -1}
	if t.Status != record.StatusPending && t.Status != record.StatusScheduled && t.Status != record.StatusBlocked {
		return w, true
	}
	ts := m.types.named(t.Type)
	if t.Status == record.StatusBlocked && t.Opts().SignalUntil == 0 {
		w.add(WhyReason{Code: WhyBlocked, Steps: waitsForSteps(m, t)})
	}
	if t.LacksSignal() {
		w.add(WhyReason{Code: WhySignal, At: t.Opts().SignalUntil})
	}
	if t.Status == record.StatusScheduled || t.Status == record.StatusBlocked && t.RunAt > max(now.T, m.Stamp().T) {
		w.add(WhyReason{Code: WhyScheduled, At: t.RunAt})
	}
	if behind := ts.BehindWhom(t); behind != 0 {
		w.add(WhyReason{Code: WhyGroupBehind, TaskID: behind})
	}
	if w.Reasons == nil {
		w.Ahead = ts.Ahead(t)
	}
	whyOfType(m, &w, ts, t, max(now.T, m.Stamp().T))
	if w.Reasons == nil {
		w.add(WhyReason{Code: WhyQueued})
	}
	return w, true
}

func (w *Why) add(r WhyReason) { w.Reasons = append(w.Reasons, r) }

// whyOfType adds the reasons why nothing of the type, or of the task's share, is claimed at now.
func whyOfType(m *Machine, w *Why, ts *typeState, t *record.Task, now int64) {
	if r := ts.Record(); r != nil {
		if r.Settings.Paused {
			w.add(WhyReason{Code: WhyTypePaused})
		}
		if ts.Slots() <= 0 {
			w.add(WhyReason{Code: WhyLimitReached, Holders: holders(m, ts, "")})
		}
		if at := r.ClaimableAt(now); at > now {
			w.add(WhyReason{Code: WhyRateLimited, At: at})
		}
	}
	key := t.Opts().ShareKey
	gate := ts.ShareGate(key, now)
	if gate.Paused {
		w.add(WhyReason{Code: WhySharePaused, ShareKey: key})
	}
	if gate.Limited {
		w.add(WhyReason{Code: WhyShareLimitReached, ShareKey: key, Holders: holders(m, ts, key)})
	}
	if gate.OpensAt != 0 {
		w.add(WhyReason{Code: WhyShareRateLimited, ShareKey: key, At: gate.OpensAt})
	}
}

// holders returns the holders of the type's claims, or of those of one share key.
func holders(m *Machine, ts *typeState, shareKey string) []Holder {
	ids := index.Smallest{Most: whyHoldersMax}
	m.claims.holdings.Tasks(ts.held, index.ByType, whyClaimsMax, func(id uint64) {
		if shareKey == "" || m.Get(id).Opts().ShareKey == shareKey {
			ids.Add(id)
		}
	})
	holders := make([]Holder, len(ids.IDs))
	for i, id := range ids.IDs {
		holders[i] = Holder{TaskID: id, WorkerID: m.Get(id).WorkerID}
	}
	return holders
}

// waitsForSteps returns the names of the step's dependencies that have not completed: at most
// whyStepsMax, in the plan's order.
func waitsForSteps(m *Machine, t *record.Task) []string {
	var names []string
	s := t.Step()
	for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
		if len(names) == whyStepsMax {
			break
		}
		if m.Get(s.Plan.IDOf(s.ParentID, int(on))).Status != record.StatusCompleted {
			names = append(names, s.Plan.Steps[on].Name)
		}
	}
	return names
}
