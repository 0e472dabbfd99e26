package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
)

// differs compares what the machine made of a command with what the model did,
// and returns the first difference in words, "" if there is none.
func differs(got *fsm.Result, want *answer) string {
	switch {
	case string(got.Code) != want.code:
		return fmt.Sprintf("code %q, the model has %q", got.Code, want.code)
	case string(got.Reason) != want.why:
		return fmt.Sprintf("code %q because of %q, the model has %q", got.Code, got.Reason, want.why)
	case got.Repeated != want.repeated:
		return fmt.Sprintf("repeated %v, the model has %v", got.Repeated, want.repeated)
	case got.ClaimsRepeated != want.known:
		return fmt.Sprintf("claims answered before: %v, the model has %v", got.ClaimsRepeated, want.known)
	case got.Gone != want.gone:
		return fmt.Sprintf("gone %v, the model has %v", got.Gone, want.gone)
	case got.Evicted != want.evicted:
		return fmt.Sprintf("%d tasks evicted, the model has %d", got.Evicted, want.evicted)
	case len(got.Results) != len(want.results) || got.FailedOp != want.failedOp:
		return fmt.Sprintf("%d results of a batch, failed op %d; the model has %d, %d", len(got.Results), got.FailedOp, len(want.results), want.failedOp)
	case got.Expired != want.expired:
		return fmt.Sprintf("%d claims expired, the model has %d", got.Expired, want.expired)
	case len(got.Submitted) != len(want.submitted):
		return fmt.Sprintf("%d tasks submitted, the model has %d", len(got.Submitted), len(want.submitted))
	case len(got.Claims) != len(want.claims):
		return fmt.Sprintf("%d tasks claimed, the model has %d", len(got.Claims), len(want.claims))
	case (got.Task == nil) != (want.task == nil):
		return fmt.Sprintf("a task: %v, the model: %v", got.Task != nil, want.task != nil)
	}
	if want.task != nil {
		if d := taskDiffers(got.Task, want.task); d != "" {
			return d
		}
	}
	if want.kind != nil {
		if d := typeDiffers(got.Type, want.kind); d != "" {
			return d
		}
	}
	if d := sightDiffers(got, want); d != "" {
		return d
	}
	if d := parentDiffers(got.Parent, want.parent); d != "" {
		return d
	}
	for i := range want.results {
		if d := differs(&got.Results[i], &want.results[i]); d != "" {
			return fmt.Sprintf("op %d: %s", i, d)
		}
	}
	for i := range want.submitted {
		g, w := &got.Submitted[i], &want.submitted[i]
		if g.Created != w.created || g.SameRequest != w.same || g.Gone != w.gone {
			return fmt.Sprintf("submitted task %d: created %v, same %v, gone %v; the model has %v, %v, %v",
				i, g.Created, g.SameRequest, g.Gone, w.created, w.same, w.gone)
		}
		if d := taskDiffers(g.Task, w.task); d != "" {
			return fmt.Sprintf("submitted task %d: %s", i, d)
		}
	}
	for i := range want.claims {
		g, w := &got.Claims[i], &want.claims[i]
		if g.Token != w.token || g.Live != w.live || g.Task.ID != w.id {
			return fmt.Sprintf("claim %d: task %d, token %d, live %v; the model has %d, %d, %v", i, g.Task.ID, g.Token, g.Live, w.id, w.token, w.live)
		}
		if w.task != nil {
			if d := taskDiffers(&g.Task, w.task); d != "" {
				return fmt.Sprintf("claim %d: %s", i, d)
			}
		}
	}
	return ""
}

// taskDiffers compares one task.
func taskDiffers(g *fsm.Task, w *task) string {
	body, opaque := g.Params, g.Payload != nil
	if opaque {
		body = g.Payload
	}
	result, binary := g.Result, g.ResultPayload != nil
	if binary {
		result = g.ResultPayload
	}
	if g.ID == w.id && g.Status.String() == w.status && g.Token == w.token && g.WorkerID == w.worker &&
		g.Attempts == w.attempts && g.MaxAttempts == w.max && g.Priority == w.priority && g.Type == w.kind &&
		g.Key == w.key && g.LeaseMS == w.leaseMS && g.LeaseSeq == w.seq && g.ClaimLeaseMS == w.claimMS &&
		g.LeaseEndU == w.endU && g.ClaimedAt == w.claimedAt && g.CreatedAt == w.createdAt && g.UpdatedAt == w.updatedAt &&
		g.CompletedAt == w.completedAt && g.Error == w.reason && string(body) == w.body && opaque == w.opaque &&
		string(result) == w.result && binary == w.binary && sameLog(g.Log, w.log) && w.runAt.is(g.RunAt) &&
		g.RemoveAt == w.removeAt && g.CancelRequested == w.asked && string(g.Progress) == w.progress &&
		sameOptions(g.Options, &w.options) && sameThen(g.Then, w.then) && samePlace(g, w) {
		return ""
	}
	g2 := *g
	return fmt.Sprintf("task %d is\n    %+v (options %+v, beside %+v, %s)\n  the model has\n    %+v (run at %+v, beside %+v)",
		w.id, g2, g.Options, g.Then, describePlace(g), *w, w.runAt, w.then)
}

func sameOptions(g *fsm.Options, w *options) bool {
	if g == nil {
		return w.equal(&options{})
	}
	o := options{
		expiresAt: g.ExpiresAt, backoff: backoffOf(g.Backoff), keepMS: g.RetentionMS, group: g.Group, active: g.UniqueActive, ofKind: g.KeyOfType,
	}
	for _, l := range g.Labels {
		o.labels = append(o.labels, label{l.Name, l.Value})
	}
	return o.equal(w)
}

func backoffOf(b *fsm.Backoff) *backoff {
	if b == nil {
		return nil
	}
	return &backoff{initial: b.InitialMS, most: b.MaxMS, factor: b.Factor, jitter: b.Jitter}
}

func sameThen(g *fsm.Then, w *then) bool {
	if g == nil || w == nil {
		return g == nil && w == nil
	}
	return slices.EqualFunc(g.Submitted, w.submitted, func(g fsm.FollowUp, w followUp) bool { return g.ID == w.id && g.Created == w.created }) &&
		slices.EqualFunc(g.Claims, w.claims, func(g fsm.ClaimRef, w claimOf) bool { return g.TaskID == w.id && g.Token == w.token })
}

// typeDiffers compares what is seen of a type.
func typeDiffers(g *fsm.TypeView, w *typeSeen) string {
	if g == nil {
		return "no type is shown, the model shows " + w.name
	}
	s := settings{
		paused: g.Settings.Paused, claims: g.Settings.MaxClaimed, rate: g.Settings.RateLimit, leaseMS: g.Settings.LeaseMS,
		limited: g.Settings.LimitSet, max: g.Settings.MaxAttempts, backoff: backoffOf(g.Settings.Backoff), keepMS: g.Settings.RetentionMS,
	}
	same := g.Type == w.name && s.equal(&w.settings) && g.OldestPendingAgeMS == w.ageMS
	for status := fsm.StatusPending; status <= fsm.StatusCancelled; status++ {
		same = same && g.Counts[status] == w.counts[status.String()]
	}
	if same {
		return ""
	}
	return fmt.Sprintf("type %s is\n    %+v\n  the model has\n    %+v", w.name, *g, *w)
}

func sameLog(got []fsm.Attempt, want []attempt) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		g, w := &got[i], &want[i]
		if g.Token != w.token || g.WorkerID != w.worker || g.ClaimedAt != w.claimedAt ||
			g.EndedAt != w.endedAt || g.Outcome.String() != w.outcome || g.Error != w.reason {
			return false
		}
	}
	return true
}

// stateDiffers compares the whole state with the model's, and what is derived
// from it: the counts, and which tasks there are at all.
func stateDiffers(machine *fsm.Machine, m *model) string {
	there := 0
	byStatus := map[string]int64{}
	for id := uint64(1); id <= uint64(len(m.tasks)); id++ {
		got, want := machine.Get(id), m.find(id)
		if (got == nil) != (want == nil) {
			return fmt.Sprintf("task %d is there: %v, in the model: %v", id, got != nil, want != nil)
		}
		if want == nil {
			continue
		}
		there++
		byStatus[want.status]++
		if d := taskDiffers(got, want); d != "" {
			return d
		}
		if want.key != "" && m.keys[want.taken()] == id {
			by := machine.ByKey(want.key)
			if want.options.ofKind {
				by = machine.ByTypeKey(want.kind, want.key)
			}
			if by == nil || by.ID != id {
				return fmt.Sprintf("key %q does not lead to task %d", want.key, id)
			}
		}
	}
	stats := machine.Stats(machine.Stamp())
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		if n := byStatus[s.String()]; stats.Counts[s] != n {
			return fmt.Sprintf("%d tasks are counted as %s, the model has %d", stats.Counts[s], s, n)
		}
	}
	if listed := len(machine.List(fsm.ListQuery{Limit: 1000}).Tasks); listed != min(there, 1000) {
		return fmt.Sprintf("%d tasks are listed, the model has %d", listed, there)
	}
	if s := machine.Stamp(); s.U != m.u || s.T != m.t {
		return fmt.Sprintf("the clocks are %+v, the model has %d and %d", s, m.u, m.t)
	}
	d := machine.Defaults()
	got := settings{leaseMS: d.LeaseMS, limited: d.LimitSet, max: d.MaxAttempts, backoff: backoffOf(d.Backoff), keepMS: d.RetentionMS}
	if !got.equal(&m.defaults) {
		return fmt.Sprintf("the server's defaults are %+v, the model has %+v", got, m.defaults)
	}
	for name := range m.types {
		got, _ := machine.Type(name, machine.Stamp())
		want := m.see(name)
		if d := typeDiffers(&got, &want); d != "" {
			return d
		}
	}
	if next, some := machine.NextDue(); next != m.nextDue() || some != (m.nextDue() != 0) {
		return fmt.Sprintf("the next tick is due at %d (%v), in the model at %d", next, some, m.nextDue())
	}
	if machine.ClaimCount() != int(byStatus[claimed]) {
		return fmt.Sprintf("%d claims live, the model has %d", machine.ClaimCount(), byStatus[claimed])
	}
	if d := schedulesDiffer(machine, m); d != "" {
		return d
	}
	if d := keptTooLong(machine, m); d != "" {
		return d
	}
	if d := parentsDiffer(machine, m); d != "" {
		return d
	}
	if machine.Level() != m.level || len(machine.Nodes()) != len(m.nodes) {
		return fmt.Sprintf("level %d and %d nodes, the model has %d and %d", machine.Level(), len(machine.Nodes()), m.level, len(m.nodes))
	}
	return ""
}
