package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// differs compares what the machine made of a command with what the model did,
// and returns the first difference in words, "" if there is none.
func differs(got *fsm.Result, want *model.Answer) string {
	switch {
	case string(got.Code) != want.Code:
		return fmt.Sprintf("code %q, the model has %q", got.Code, want.Code)
	case string(got.Reason) != want.Why:
		return fmt.Sprintf("code %q because of %q, the model has %q", got.Code, got.Reason, want.Why)
	case got.Repeated != want.Repeated:
		return fmt.Sprintf("repeated %v, the model has %v", got.Repeated, want.Repeated)
	case got.ClaimsRepeated != want.Known:
		return fmt.Sprintf("claims answered before: %v, the model has %v", got.ClaimsRepeated, want.Known)
	case got.Gone != want.Gone:
		return fmt.Sprintf("gone %v, the model has %v", got.Gone, want.Gone)
	case got.Evicted != want.Evicted:
		return fmt.Sprintf("%d tasks evicted, the model has %d", got.Evicted, want.Evicted)
	case len(got.Results) != len(want.Results) || got.FailedOp != want.FailedOp:
		return fmt.Sprintf("%d results of a batch, failed op %d; the model has %d, %d", len(got.Results), got.FailedOp, len(want.Results), want.FailedOp)
	case got.Expired != want.Expired:
		return fmt.Sprintf("%d claims expired, the model has %d", got.Expired, want.Expired)
	case len(got.Submitted) != len(want.Submitted):
		return fmt.Sprintf("%d tasks submitted, the model has %d", len(got.Submitted), len(want.Submitted))
	case len(got.Claims) != len(want.Claims):
		return fmt.Sprintf("%d tasks claimed, the model has %d", len(got.Claims), len(want.Claims))
	case (got.Task == nil) != (want.Task == nil):
		return fmt.Sprintf("a task: %v, the model: %v", got.Task != nil, want.Task != nil)
	}
	if want.Task != nil {
		if d := taskDiffers(got.Task, want.Task); d != "" {
			return d
		}
	}
	if want.Kind != nil {
		if d := typeDiffers(got.Type, want.Kind); d != "" {
			return d
		}
	}
	if d := sightDiffers(got, want); d != "" {
		return d
	}
	if d := parentDiffers(got.Parent, want.Parent); d != "" {
		return d
	}
	for i := range want.Results {
		if d := differs(&got.Results[i], &want.Results[i]); d != "" {
			return fmt.Sprintf("op %d: %s", i, d)
		}
	}
	for i := range want.Submitted {
		g, w := &got.Submitted[i], &want.Submitted[i]
		if g.Refused != w.Refused || g.Refused && g.Step != w.Step {
			return fmt.Sprintf("submitted task %d: refused %v for step %d; the model has %v, %d", i, g.Refused, g.Step, w.Refused, w.Step)
		}
		if g.Created != w.Created || g.SameRequest != w.Same || g.Gone != w.Gone {
			return fmt.Sprintf("submitted task %d: created %v, same %v, gone %v; the model has %v, %v, %v",
				i, g.Created, g.SameRequest, g.Gone, w.Created, w.Same, w.Gone)
		}
		if d := taskDiffers(g.Task, w.Task); d != "" {
			return fmt.Sprintf("submitted task %d: %s", i, d)
		}
	}
	for i := range want.Claims {
		g, w := &got.Claims[i], &want.Claims[i]
		if g.Token != w.Token || g.Live != w.Live || g.Task.ID != w.ID {
			return fmt.Sprintf("claim %d: task %d, token %d, live %v; the model has %d, %d, %v", i, g.Task.ID, g.Token, g.Live, w.ID, w.Token, w.Live)
		}
		if w.Task != nil {
			if d := taskDiffers(&g.Task, w.Task); d != "" {
				return fmt.Sprintf("claim %d: %s", i, d)
			}
		}
	}
	return ""
}

// taskDiffers compares one task.
func taskDiffers(g *fsm.Task, w *model.Task) string {
	body, opaque := g.Params, g.Payload != nil
	if opaque {
		body = g.Payload
	}
	result, binary := g.Result, g.ResultPayload != nil
	if binary {
		result = g.ResultPayload
	}
	if g.ID == w.ID && g.Status.String() == w.Status && g.Token == w.Token && g.WorkerID == w.Worker &&
		g.Attempts == w.Attempts && g.MaxAttempts == w.Max && g.Priority == w.Priority && g.Type == w.Kind &&
		g.Key == w.Key && g.LeaseMS == w.LeaseMS && g.LeaseSeq == w.Seq && g.ClaimLeaseMS == w.ClaimMS &&
		g.LeaseEndU == w.EndU && g.ClaimedAt == w.ClaimedAt && g.CreatedAt == w.CreatedAt && g.UpdatedAt == w.UpdatedAt &&
		g.CompletedAt == w.CompletedAt && g.Error == w.Reason && string(body) == w.Body && opaque == w.Opaque &&
		string(result) == w.Result && binary == w.Binary && sameLog(g.Log, w.Log) && w.RunAt.Is(g.RunAt) &&
		g.RemoveAt == w.RemoveAt && g.CancelRequested == w.Asked && string(g.Progress) == w.Progress &&
		sameOptions(g.Options, &w.Options) && sameThen(g.Then, w.Then) && samePlace(g, w) {
		return ""
	}
	g2 := *g
	return fmt.Sprintf("task %d is\n    %+v (options %+v, beside %+v, %s)\n  the model has\n    %+v (run at %+v, beside %+v)",
		w.ID, g2, g.Options, g.Then, describePlace(g), *w, w.RunAt, w.Then)
}

func sameOptions(g *fsm.Options, w *model.Options) bool {
	if g == nil {
		return w.Equal(&model.Options{})
	}
	o := model.Options{
		ExpiresAt: g.ExpiresAt, Backoff: backoffOf(g.Backoff), KeepMS: g.RetentionMS, Group: g.Group, Active: g.UniqueActive, OfKind: g.KeyOfType,
	}
	for _, l := range g.Labels {
		o.Labels = append(o.Labels, model.Label{Name: l.Name, Value: l.Value})
	}
	return o.Equal(w)
}

func backoffOf(b *fsm.Backoff) *model.Backoff {
	if b == nil {
		return nil
	}
	return &model.Backoff{Initial: b.InitialMS, Most: b.MaxMS, Factor: b.Factor, Jitter: b.Jitter}
}

func sameThen(g *fsm.Then, w *model.Then) bool {
	if g == nil || w == nil {
		return g == nil && w == nil
	}
	return slices.EqualFunc(g.Submitted, w.Submitted, func(g fsm.FollowUp, w model.FollowUp) bool { return g.ID == w.ID && g.Created == w.Created }) &&
		slices.EqualFunc(g.Claims, w.Claims, func(g fsm.ClaimRef, w model.ClaimOf) bool { return g.TaskID == w.ID && g.Token == w.Token })
}

// typeDiffers compares what is seen of a type.
func typeDiffers(g *fsm.TypeView, w *model.TypeSeen) string {
	if g == nil {
		return "no type is shown, the model shows " + w.Name
	}
	s := model.Settings{
		Paused: g.Settings.Paused, Claims: g.Settings.MaxClaimed, Rate: g.Settings.RateLimit, LeaseMS: g.Settings.LeaseMS,
		Limited: g.Settings.LimitSet, Max: g.Settings.MaxAttempts, Backoff: backoffOf(g.Settings.Backoff), KeepMS: g.Settings.RetentionMS,
	}
	same := g.Type == w.Name && s.Equal(&w.Settings) && g.OldestPendingAgeMS == w.AgeMS
	for status := fsm.StatusPending; status <= fsm.StatusCancelled; status++ {
		same = same && g.Counts[status] == w.Counts[status.String()]
	}
	if same {
		return ""
	}
	return fmt.Sprintf("type %s is\n    %+v\n  the model has\n    %+v", w.Name, *g, *w)
}

func sameLog(got []fsm.Attempt, want []model.Attempt) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		g, w := &got[i], &want[i]
		if g.Token != w.Token || g.WorkerID != w.Worker || g.ClaimedAt != w.ClaimedAt ||
			g.EndedAt != w.EndedAt || g.Outcome.String() != w.Outcome || g.Error != w.Reason {
			return false
		}
	}
	return true
}

// stateDiffers compares the whole state with the model's, and what is derived
// from it: the counts, and which tasks there are at all.
func stateDiffers(machine *fsm.Machine, m *model.Model) string {
	there := 0
	byStatus := map[string]int64{}
	for id := uint64(1); id <= uint64(len(m.Tasks)); id++ {
		got, want := machine.Get(id), m.Find(id)
		if (got == nil) != (want == nil) {
			return fmt.Sprintf("task %d is there: %v, in the model: %v", id, got != nil, want != nil)
		}
		if want == nil {
			continue
		}
		there++
		byStatus[want.Status]++
		if d := taskDiffers(got, want); d != "" {
			return d
		}
		if want.Key != "" && m.Keys[want.Taken()] == id {
			by := machine.ByKey(want.Key)
			if want.Options.OfKind {
				by = machine.ByTypeKey(want.Kind, want.Key)
			}
			if by == nil || by.ID != id {
				return fmt.Sprintf("key %q does not lead to task %d", want.Key, id)
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
	if s := machine.Stamp(); s.U != m.U || s.T != m.T {
		return fmt.Sprintf("the clocks are %+v, the model has %d and %d", s, m.U, m.T)
	}
	d := machine.Defaults()
	got := model.Settings{LeaseMS: d.LeaseMS, Limited: d.LimitSet, Max: d.MaxAttempts, Backoff: backoffOf(d.Backoff), KeepMS: d.RetentionMS}
	if !got.Equal(&m.Defaults) {
		return fmt.Sprintf("the server's defaults are %+v, the model has %+v", got, m.Defaults)
	}
	for name := range m.Types {
		got, _ := machine.Type(name, machine.Stamp())
		want := m.See(name)
		if d := typeDiffers(&got, &want); d != "" {
			return d
		}
	}
	if next, some := machine.NextDue(); next != m.NextDue() || some != (m.NextDue() != 0) {
		return fmt.Sprintf("the next tick is due at %d (%v), in the model at %d", next, some, m.NextDue())
	}
	if machine.ClaimCount() != int(byStatus[model.Claimed]) {
		return fmt.Sprintf("%d claims live, the model has %d", machine.ClaimCount(), byStatus[model.Claimed])
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
	if machine.Level() != m.Level || len(machine.Nodes()) != len(m.Nodes) {
		return fmt.Sprintf("level %d and %d nodes, the model has %d and %d", machine.Level(), len(machine.Nodes()), m.Level, len(m.Nodes))
	}
	return ""
}
