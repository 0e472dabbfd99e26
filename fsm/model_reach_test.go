package fsm

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// reached counts what came to pass in random logs.
type reached map[string]int

// see notes what an entry did. known are the options of all tasks that were there
// once in its log.
func (n reached) see(m *Machine, e testEntry, a Applied, known map[uint64]*record.Options) {
	for i, c := range e.Commands {
		n.seeResult(m, c, a.Results[i])
	}
	for id, t := range m.tasks.All() {
		known[id] = t.Opts()
		n.seeTask(t)
		n.count(t.Key != "" && !t.Status.Ended() && windowOver(t.KeyUntil(), m.Stamp().T), "a key whose window is over")
		n.seeOfParent(m, t)
	}
	n.seeTrail(m, e, known)
	for _, id := range a.Ended {
		if o := known[id]; o != nil && m.gone.table.Get(id) != nil {
			_, evicted := e.Commands[len(e.Commands)-1].(command.Evict)
			n.count(o.Parent != nil && evicted, "an evicted parent")
			n.count(o.Parent != nil, "a removed parent")
			n.count(o.Step != nil, "a removed step")
		}
	}
	for ts := range m.types.from("") {
		n.count(int64(ts.Ready()) < ts.counts[record.StatusPending], "a task behind its group's head")
		n.count(ts.Record() != nil && ts.Record().Settings.Paused && ts.Ready() > 0, "a paused type with tasks")
		n.count(ts.Ready() > 0 && ts.Slots() <= 0, "a type with claims enough")
		n.count(ts.Shares() > 1 && ts.Record() != nil && ts.Record().Settings.MaxClaimedPerKey > 0, "shares with a limit")
		n.count(ts.Shares() > 1 && ts.Record() != nil && ts.Record().Settings.Fair, "shares that take turns")
	}
	for _, of := range m.shares.table.All() {
		ts := m.types.named(of.Type)
		gate := ts.ShareGate(of.Key, m.Stamp().T)
		n.count(ts.Ready() > 0 && gate.Paused, "a paused share")
		n.count(ts.Ready() > 0 && gate.Limited && of.Settings.MaxClaimed > 0, "a share with claims enough by itself")
		n.count(gate.OpensAt != 0 && of.Settings.RateLimit == 0, "a share waiting for its type's rate limit")
		n.count(gate.OpensAt != 0 && of.Settings.RateLimit > 0, "a share waiting for its own rate limit")
	}
	_, waits := m.NextOpening()
	n.count(waits, "a type waiting for its rate limit")
	for _, v := range m.Schedules() {
		n.count(v.Skipped > 0, "a slot passed over")
		n.count(v.Version != 0 && v.LastRunAt > 0 && v.UpdatedAt > v.LastRunAt, "a schedule replaced after its first task")
	}
	n["removed"] += a.Removed
	n["requeued"] += a.Requeued
	n["told to who waits"] += len(a.Ready)
}

func (n reached) count(seen bool, what string) {
	if seen {
		n[what]++
	}
}

func (n reached) seeTask(t *record.Task) {
	n.count(t.Status == record.StatusScheduled, "scheduled")
	n.count(t.Status == record.StatusFailed && t.Error == "expired before it was claimed", "expired before its claim")
	n.count(t.Status == record.StatusFailed && t.Error == "no signal came in time", "failed without a signal")
	n.count(t.Status == record.StatusCompleted && t.CancelRequested, "completed though asked to cancel")
	n.count(t.Status == record.StatusFailed && t.Error == expiredAgain, "expired before its next claim")
	n.count(t.Status == record.StatusCancelled && t.Then != nil, "moved")
	n.count(t.Opts().Origin != nil, "a dead letter")
	n.count(t.Opts().Origin != nil && t.Status == record.StatusCompleted, "a dead letter that is done")
	n.count(t.Status == record.StatusCancelled && len(t.Log) == 0 && t.Opts().Parent == nil, "cancelled before any claim")
	n.count(t.Status == record.StatusScheduled && len(t.Log) > 0 && t.Log[len(t.Log)-1].Outcome == record.OutcomeExpired, "backed off after an expiry")
	if t.Status == record.StatusCancelled && t.CancelRequested && t.Opts().Parent == nil {
		n["cancelled by "+t.Log[len(t.Log)-1].Outcome.String()]++
	}
}

func (n reached) seeResult(m *Machine, c command.Command, r Result) {
	n.count(r.Code != "", "code "+string(r.Code))
	n.count(r.Gone && r.Repeated, "repeated of a removed task")
	n.count(r.Gone && !r.Repeated, "refused for a removed task")
	n.count(r.Gone && r.Code == CodeKeyTaken, "refused as a removed task has the key")
	n["evicted"] += r.Evicted
	n["forgotten"] += r.Forgotten
	n.count(r.Repeated && len(r.Claims) > 0, "claims repeated")
	for _, s := range r.Submitted {
		n.count(s.Gone, "submitted with the key of a removed task")
		n.count(!s.Created && !s.Gone && !s.Refused, "submitted with a key that is taken")
		n.count(s.Replaced, "submitted in place of one that waits")
		n.count(s.Refused && s.Step >= 0, "refused for a step")
	}
	switch c := c.(type) {
	case command.ClaimNext:
		n.count(c.SortBy == command.SortRandom && len(r.Claims) > 1, "random claims")
		n.count(c.MoreAttempts > 0 && len(r.Claims) > 0, "claims by attempts left")
		n.count(c.Runs && len(r.Claims) > 1 && r.Claims[0].Task.Opts().Group != "" && r.Claims[1].Task.Opts().Group == r.Claims[0].Task.Opts().Group, "claims of a run")
	case command.Complete:
		n.count(r.Repeated && len(r.Submitted) > 0, "follow-ups repeated")
		n.count(r.Code == CodeInvalidTask, "completed with a follow-up that is refused")
		n.count(!r.Repeated && len(r.Submitted) > 0 && len(r.Claims) > 0, "completed with follow-ups and a claim")
		n.count(slices.ContainsFunc(r.Claims, func(c Claim) bool {
			return slices.ContainsFunc(r.Submitted, func(s Submitted) bool { return s.Created && s.Task.ID == c.Task.ID })
		}), "claimed a follow-up")
		n.count(r.Repeated && slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.Live }), "told again of a claim by a repeated complete")
		n.seeComplete(c, r)
	case command.Release:
		n.count(c.Answer > 0 && r.Code == "" && !r.Repeated, "released the latest answer's claim")
		held := r.Task != nil && r.Task.Status == record.StatusClaimed && r.Task.WorkerID == c.WorkerID && (c.Token == 0 || r.Task.Token == c.Token)
		n.count(held && r.Code == CodeStaleClaim, "kept a claim that a later answer told of")
	case command.Signal:
		n.count(r.Code == "" && !r.Repeated && r.Task.Status == record.StatusBlocked, "signalled early")
		n.count(r.Code == "" && !r.Repeated && r.Task.Status != record.StatusBlocked, "signalled")
		n.count(r.Repeated, "signalled again")
		n.count(r.Reason == "no_signal", "signalled without need")
	case command.AddSteps:
		n.seeAddSteps(m, r)
	case command.Patch:
		n.count(r.Code == "" && r.Parent != nil, "a parent patched")
		n.count(r.Reason == "running", "refused a time for a parent")
	case command.RunSchedules:
		n.count(len(r.Submitted) == 0, "no slot done")
		n.count(len(r.Submitted) > 0, "a slot done")
		n.count(len(r.Submitted) > 1, "slots of several schedules done")
	case command.Act:
		verb := map[command.Action]string{command.ActionRetry: "retried", command.ActionCancel: "cancelled", command.ActionDelete: "deleted"}[c.Action]
		n.count(r.Acted > 0 && r.Acted < len(c.IDs), verb+" some of many")
		n.count(r.Acted > 0 && len(c.Filter.Labels) > 0, "acted by labels")
	case command.Retry:
		n.count(r.Repeated && r.Task.Status == record.StatusPending, "retry repeated")
		n.seeRetry(r)
	case command.Delete:
		n.count(r.Code == "" && r.Task.Opts().Parent != nil, "deleted a parent with its steps")
		n.count(r.Reason == ReasonStep, "refused to delete a step")
	case command.ClaimFinalization, command.ExtendFinalization, command.ReleaseFinalization, command.Finalize:
		n.seeFinalization(m, c, r)
	case command.Batch:
		n.count(c.Atomic && r.FailedOp > 0, "batch undone after ops that were done")
		n.count(c.Atomic && slices.ContainsFunc(c.Ops[:r.FailedOp], func(op command.Command) bool { return isOfParent(m, op) }), "batch undone after ops of parents")
		n.count(c.Atomic && r.FailedOp == 0 && len(c.Ops) > 1 && r.Code == "", "atomic batch done")
		for i := range r.Results {
			n.seeResult(m, c.Ops[i], r.Results[i])
		}
	}
}

// TestRandomLog_ReachesEveryRule ensures that random logs do what they are for:
// a model that is never asked proves nothing.
func TestRandomLog_ReachesEveryRule(t *testing.T) {
	t.Parallel()
	n := reached{}
	for seed := range uint64(400) {
		m, known := newSmall(), map[uint64]*record.Options{}
		for _, e := range randomLog(seed, 150) {
			n.see(m, e, mustApplyTo(t, m, e), known)
		}
	}
	for _, what := range []string{
		"a task behind its group's head", "a type waiting for its rate limit", "a paused type with tasks", "a paused share", "a share with claims enough by itself", "a share waiting for its type's rate limit", "a share waiting for its own rate limit", "a type with claims enough",
		"scheduled", "expired before its claim", "expired before its next claim", "moved", "a key whose window is over", "backed off after an expiry", "removed", "requeued", "evicted", "forgotten", "told to who waits",
		"completed though asked to cancel", "cancelled before any claim", "a dead letter", "a dead letter that is done",
		"cancelled by failed", "cancelled by released", "cancelled by expired", "cancelled by cancelled",
		"repeated of a removed task", "refused for a removed task", "claims repeated", "follow-ups repeated", "retry repeated",
		"submitted with the key of a removed task", "submitted with a key that is taken", "submitted in place of one that waits", "signalled early", "signalled", "signalled again", "signalled without need", "failed without a signal",
		"random claims", "claims by attempts left", "claims of a run", "completed with follow-ups and a claim", "claimed a follow-up",
		"told again of a claim by a repeated complete", "released the latest answer's claim", "kept a claim that a later answer told of",
		"batch undone after ops that were done", "atomic batch done",
		"completed with a follow-up that is refused", "a slot done", "slots of several schedules done", "no slot done", "a slot passed over", "a schedule replaced after its first task",
		"retried some of many", "cancelled some of many", "deleted some of many", "acted by labels", "code schedule_not_found",
		"code invalid_request", "code task_not_found", "code no_pending_tasks", "code task_already_claimed", "code task_not_claimed",
		"code task_not_claimable", "code wrong_worker", "code stale_claim", "code task_completed", "code task_failed", "code task_cancelled",
		"code task_not_terminal", "code invalid_task", "code max_attempts_reached", "code key_taken",
	} {
		n.enough(t, what)
	}
	for _, rare := range []string{"refused as a removed task has the key", "refused one as it waits for a step that was asked"} {
		if n[rare] == 0 { // as most keys are taken within types, and few steps are asked to stop alone
			t.Errorf("%s: never", rare)
		}
	}
	for _, what := range reachedOfParents {
		n.enough(t, what)
	}
}

// enough fails the test if that was hardly reached.
func (n reached) enough(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %d times", what, n[what])
	if n[what] < 10 {
		t.Errorf("%s: only %d times", what, n[what])
	}
}
