package fsm

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// why says why the task is not running, as plainly as can be.
func (s *model) why(id uint64, now int64) (w Why, ok bool) {
	t := s.find(id)
	if t == nil {
		return Why{}, false
	}
	w = Why{Status: t.Status, Ahead: -1}
	switch t.Status {
	case record.StatusPending:
	case record.StatusScheduled:
		w.Reasons = append(w.Reasons, WhyReason{Code: "scheduled", At: t.RunAt})
	case record.StatusBlocked:
		if len(s.waitsFor(t)) > 0 {
			w.Reasons = append(w.Reasons, s.whyBlocked(t))
		}
		if s.lacksSignal(t) {
			w.Reasons = append(w.Reasons, WhyReason{Code: "signal", At: t.Opts().SignalUntil})
		}
		if t.RunAt > now {
			w.Reasons = append(w.Reasons, WhyReason{Code: "scheduled", At: t.RunAt})
		}
	default:
		return w, true
	}
	if behind := s.behind(t); behind != 0 {
		w.Reasons = append(w.Reasons, WhyReason{Code: "group_behind", TaskID: behind})
	}
	if w.Reasons == nil {
		w.Ahead = 0
		for _, o := range s.tasks {
			if o.Type == t.Type && o.Opts().ShareKey == t.Opts().ShareKey && s.ready(o) && (o.Priority > t.Priority || o.Priority == t.Priority && o.ID < t.ID) {
				w.Ahead++
			}
		}
	}
	if x := s.typeRecord(t.Type); x != nil {
		w.Reasons = append(w.Reasons, s.whyOfType(x, now)...)
	}
	w.Reasons = append(w.Reasons, s.whyOfShare(ofShare(t), now)...)
	if w.Reasons == nil {
		w.Reasons = []WhyReason{{Code: "queued"}}
	}
	return w, true
}

// whyBlocked names what the blocked step waits for.
func (s *model) whyBlocked(t *record.Task) WhyReason {
	r := WhyReason{Code: "blocked"}
	for _, place := range s.waitsFor(t) {
		if len(r.Steps) < 100 {
			r.Steps = append(r.Steps, t.Opts().Step.Plan.Steps[place].Name)
		}
	}
	return r
}

// behind is the task of its group that keeps the task back: the one that is
// claimed, else the oldest.
func (s *model) behind(t *record.Task) (id uint64) {
	for _, o := range s.tasks {
		group := t.Opts().Group
		if group == "" || o == t || o.Type != t.Type || o.Opts().Group != group || o.Status >= record.StatusCompleted || o.Status == record.StatusBlocked {
			continue
		}
		if o.Status == record.StatusClaimed {
			return o.ID
		}
		if o.ID < t.ID && id == 0 {
			id = o.ID
		}
	}
	return id
}

func (s *model) whyOfType(x *modelType, now int64) (reasons []WhyReason) {
	if x.Paused {
		reasons = append(reasons, WhyReason{Code: "type_paused"})
	}
	holders := []Holder{}
	for _, o := range s.tasks {
		if o.Type == x.name && o.Status == record.StatusClaimed {
			holders = append(holders, Holder{o.ID, o.WorkerID})
		}
	}
	if x.MaxClaimed > 0 && len(holders) >= int(x.MaxClaimed) {
		reasons = append(reasons, WhyReason{Code: "limit_reached", Holders: holders[:min(100, len(holders))]})
	}
	if x.RateLimit > 0 {
		missing := new(big.Int).Sub(big.NewInt(oneClaim9), x.bucket)
		if at := x.at + ceilQuo(missing, x.RateLimit); at > now {
			reasons = append(reasons, WhyReason{Code: "rate_limited", At: at})
		}
	}
	return reasons
}

// compareWhy asks of every task why it is not running, and who holds claims.
func compareWhy(t rapid.TB, g *generator, m *Machine, s *model) {
	now := s.t + pick[int64](g, 0, 1, 400, 5000)
	for id := range s.ids + 2 {
		want, known := s.why(id, now)
		got, ok := m.Why(id, record.Stamp{U: s.u, T: now})
		if diff := diffOf(want, got); ok != known || diff != "" {
			t.Fatalf("why task %d waits at %d (-model +machine):\n%s", id, now, diff)
		}
	}
	if diff := diffOf(s.workers(), m.Workers("", 1000)); diff != "" {
		t.Fatalf("workers (-model +machine):\n%s", diff)
	}
}

// Ahead counts the tasks that claims by priority take before the task.
func TestWhy_ahead(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		h := newLifeHarness(t)
		for range rapid.IntRange(1, 60).Draw(rt, "tasks") {
			h.do(command.Submit{Tasks: []record.NewTask{{
				Type:        "mail",
				Priority:    rapid.OneOf(rapid.Int32Range(-2, 2), rapid.Int32()).Draw(rt, "priority"),
				MaxAttempts: rapid.Int32Range(0, 3).Draw(rt, "attempts"),
			}}})
		}
		ahead := map[uint64]int64{}
		for id := range h.m.tasks.All() {
			w, _ := h.m.Why(id, h.stamp)
			ahead[id] = w.Ahead
			if w.Reasons[0].Code != WhyQueued {
				rt.Fatalf("task %d waits for %+v", id, w)
			}
		}
		for n := int64(0); len(ahead) > 0; n++ {
			claimed := h.do(command.ClaimNext{WorkerID: "w1", Limit: 1}).Claims[0].Task.ID
			if ahead[claimed] != n {
				rt.Fatalf("task %d was claimed as number %d, %d were ahead", claimed, n, ahead[claimed])
			}
			delete(ahead, claimed)
		}
	})
}

// Of many holders the first are told.
func TestWhy_manyHolders(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(300, record.NewTask{Type: "mail"})
	h.set("mail", record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 250})
	h.claims("mail", 300, 250)
	w, _ := h.m.Why(260, h.stamp)
	if len(w.Reasons) != 1 || len(w.Reasons[0].Holders) != whyHoldersMax || w.Ahead != 9 {
		t.Fatalf("why: %d ahead, %+v", w.Ahead, w.Reasons)
	}
	for i, holder := range w.Reasons[0].Holders {
		if holder.TaskID != uint64(i+1) || holder.WorkerID == "" {
			t.Errorf("holder %d is %+v", i, holder)
		}
	}
}
