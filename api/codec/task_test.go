package codec

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/proof"
)

// TestTask_Wire checks that every appended task decodes into package wire's type with each value in its place.
func TestTask_Wire(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		task := drawTask(t)
		now := fsm.Stamp{U: rapid.Int64Range(0, 1<<40).Draw(t, "U"), T: rapid.Int64Range(1, 1<<42).Draw(t, "T")}
		view := View{Now: now, Params: true, Result: true, Log: true}
		if task.Parent() != nil {
			view.Steps = drawSteps(t, len(task.Parent().Plan.Steps))
		}
		b := AppendTask(nil, &task, view)
		var got wire.Task
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		want := wireTask(&task, now)
		wireFamily(&want, &task, view.Steps)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("task (-want +got):\n%s\n%s", diff, b)
		}
	})
}

// wireTask is an independent conversion of a task for clients.
func wireTask(task *fsm.Task, now fsm.Stamp) wire.Task {
	at := func(ms int64) *time.Time {
		if ms == 0 {
			return nil
		}
		v := time.UnixMilli(ms).UTC()
		return &v
	}
	w := wire.Task{
		ID: task.ID, TaskType: task.Type, Params: task.Params, Payload: task.Payload, Priority: task.Priority,
		MaxAttempts: task.MaxAttempts, Attempts: task.Attempts, IdempotencyKey: task.Key, LeaseMS: task.LeaseMS,
		Status: task.Status.String(), ClaimedAt: at(task.ClaimedAt), CreatedAt: *at(task.CreatedAt), UpdatedAt: *at(task.UpdatedAt),
		CompletedAt: at(task.CompletedAt), Result: task.Result, ResultPayload: task.ResultPayload, Error: task.Error,
		RunAt: at(task.RunAt), Progress: task.Opts().Progress, CancelRequested: task.CancelRequested,
	}
	if task.Options != nil {
		wireOptions(&w, task.Options)
	}
	if task.WorkerID != "" {
		w.WorkerID = &task.WorkerID
	}
	if task.Token != 0 && task.Status != fsm.StatusRunning {
		w.ClaimToken = &task.Token
	}
	if task.Status == fsm.StatusClaimed {
		left := max(0, task.LeaseEndU-now.U)
		w.LeaseRemainingMS = &left
		w.LeaseExpiresAt = at(now.T + task.LeaseEndU - now.U)
	}
	w.AttemptsLog = []wire.Attempt{}
	for _, a := range task.Claims() {
		attempt := wire.Attempt{WorkerID: a.WorkerID, ClaimToken: a.Token, ClaimedAt: *at(a.ClaimedAt), EndedAt: at(a.EndedAt), Error: a.Error}
		if name := a.Outcome.String(); name != "" {
			attempt.Outcome = &name
		}
		w.AttemptsLog = append(w.AttemptsLog, attempt)
	}
	return w
}

// wireOptions adds the rarer fields.
func wireOptions(w *wire.Task, o *fsm.Options) {
	if o.UniqueActive {
		w.Unique = "active"
	}
	if o.ExpiresAt != 0 {
		expires := time.UnixMilli(o.ExpiresAt).UTC()
		w.ExpiresAt, w.ExpiresAgain = &expires, o.ExpiresAgain
	}
	if o.Backoff != nil {
		jitter := float64(o.Backoff.Jitter) / 1e6
		w.Backoff = &wire.Backoff{InitialMS: o.Backoff.InitialMS, MaxMS: o.Backoff.MaxMS, Factor: float64(o.Backoff.Factor) / 1e6, Jitter: &jitter}
	}
	if ms := map[int64]int64{fsm.KeepForever: -1, fsm.KeepNone: 0}; o.RetentionMS != 0 {
		kept, special := ms[o.RetentionMS]
		if !special {
			kept = o.RetentionMS
		}
		w.RetentionMS = &kept
	}
	for _, l := range o.Labels {
		if w.Labels == nil {
			w.Labels = wire.Labels{}
		}
		w.Labels[l.Name] = l.Value
	}
	w.Group, w.Traceparent = o.Group, o.Traceparent
}

// wireFamily adds the fields of tasks with steps, and of steps.
func wireFamily(w *wire.Task, task *fsm.Task, steps []fsm.StepView) {
	names := func(plan *fsm.Plan, place int) []string {
		all := []string{}
		for _, on := range plan.Steps[place].DependsOn {
			all = append(all, plan.Steps[on].Name)
		}
		return all
	}
	if task.Parent() != nil {
		plan := task.Parent().Plan
		w.Finalize = map[bool]string{false: "auto", true: "claim"}[plan.ByClaim]
		w.OnStepFailure = map[bool]string{false: "fail", true: "continue"}[plan.Continue]
		for i, s := range steps {
			w.Steps = append(w.Steps, wire.Step{Step: plan.Steps[i].Name, ID: plan.IDOf(task.ID, i), TaskType: s.Type, Status: s.Status.String(), DependsOn: names(plan, i), Error: s.Error})
		}
	}
	if s := task.Step(); s != nil {
		w.ParentID, w.Step, w.DependsOn = s.ParentID, s.Plan.Steps[task.StepPlace()].Name, names(s.Plan, task.StepPlace())
	}
}

func drawPlan(t *rapid.T) *fsm.Plan {
	p := &fsm.Plan{ByClaim: rapid.Bool().Draw(t, "by claim"), Continue: rapid.Bool().Draw(t, "continue")}
	for i := range rapid.IntRange(1, 4).Draw(t, "steps") {
		s := fsm.PlannedStep{Name: rapid.StringMatching(`[A-Za-z0-9_.:-]{1,5}`).Draw(t, "step")}
		for on := range i {
			if rapid.Bool().Draw(t, "depends") {
				s.DependsOn = append(s.DependsOn, uint16(on))
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

func drawSteps(t *rapid.T, n int) []fsm.StepView {
	steps := make([]fsm.StepView, n)
	for i := range steps {
		steps[i] = fsm.StepView{Type: "a.b:c", Status: fsm.Status(rapid.IntRange(1, 8).Draw(t, "status")), Error: rapid.String().Draw(t, "error")}
	}
	return steps
}

func drawOptions(t *rapid.T) *fsm.Options {
	o := fsm.Options{
		ExpiresAt:    rapid.Int64Range(0, 1<<42).Draw(t, "expires"),
		ExpiresAgain: rapid.Bool().Draw(t, "again"),
		RetentionMS:  rapid.OneOf(rapid.SampledFrom([]int64{fsm.KeepForever, fsm.KeepNone, 0}), rapid.Int64Range(1, wire.RetentionMSMax)).Draw(t, "retention"),
		Group:        rapid.String().Draw(t, "group"),
		UniqueActive: rapid.Bool().Draw(t, "active"),
		Traceparent:  rapid.SampledFrom([]string{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}).Draw(t, "trace"),
	}
	if rapid.Bool().Draw(t, "has backoff") {
		o.Backoff = &fsm.Backoff{
			InitialMS: rapid.Int64Range(1, wire.DelayMSMax).Draw(t, "initial"), MaxMS: rapid.Int64Range(1, wire.DelayMSMax).Draw(t, "max"),
			Factor: rapid.Int64Range(jsonout.Micro, 1_000*jsonout.Micro).Draw(t, "factor"), Jitter: rapid.Int64Range(0, jsonout.Micro).Draw(t, "jitter"),
		}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 3, rapid.ID[string]).Draw(t, "labels") {
		o.Labels = append(o.Labels, fsm.Label{Name: name, Value: rapid.String().Draw(t, "value")})
	}
	o.Progress = drawRaw(t)
	return &o
}

// drawRaw draws JSON, or nil.
func drawRaw(t *rapid.T) []byte {
	if s := rapid.SampledFrom([]string{"", "1", `{"a":[1,2]}`, `"x"`, "[ ]", "false"}).Draw(t, "raw"); s != "" {
		return []byte(s)
	}
	return nil
}

func drawTask(t *rapid.T) fsm.Task {
	ms := rapid.Int64Range(1, 253_402_300_799_999)
	maybeMS := rapid.OneOf(rapid.Just(int64(0)), ms)
	text := rapid.String()
	worker := rapid.SampledFrom([]string{"", "w", "w-1_A"})
	task := fsm.Task{
		ID: rapid.Uint64Range(1, wire.IDMax).Draw(t, "id"), Type: rapid.SampledFrom([]string{"default", "a.b:c"}).Draw(t, "type"),
		Priority: rapid.Int32().Draw(t, "priority"), MaxAttempts: rapid.Int32Range(0, math.MaxInt32).Draw(t, "max"),
		Attempts: rapid.Int32Range(0, math.MaxInt32).Draw(t, "attempts"), Key: text.Draw(t, "key"),
		LeaseMS: rapid.Int64Range(0, wire.LeaseMSMax).Draw(t, "lease"), Status: fsm.Status(rapid.IntRange(1, 8).Draw(t, "status")),
		WorkerID: worker.Draw(t, "worker"), Token: rapid.Uint64Range(0, wire.IDMax).Draw(t, "token"),
		LeaseEndU: rapid.Int64Range(0, 1<<40).Draw(t, "end"), ClaimedAt: maybeMS.Draw(t, "claimed"),
		CreatedAt: ms.Draw(t, "created"), UpdatedAt: ms.Draw(t, "updated"), CompletedAt: maybeMS.Draw(t, "completed"),
		Error: text.Draw(t, "error"), RunAt: maybeMS.Draw(t, "run"), CancelRequested: rapid.Bool().Draw(t, "cancel"),
	}
	if task.Status == fsm.StatusClaimed || task.Status == fsm.StatusCompleted {
		task.ClaimedAt = ms.Draw(t, "claimed since")
	}
	if rapid.Bool().Draw(t, "has options") {
		task.Options = drawOptions(t)
		switch plan := drawPlan(t); rapid.IntRange(0, 2).Draw(t, "family") {
		case 1:
			task.Options.Parent = &fsm.Parent{Plan: plan}
		case 2:
			place := rapid.IntRange(0, len(plan.Steps)-1).Draw(t, "place")
			task.ID += uint64(len(plan.Steps))
			task.Options.Step = &fsm.Step{ParentID: task.ID - 1 - uint64(place), Plan: plan}
		}
	}
	for _, p := range []*[]byte{&task.Params, &task.Result} {
		*p = drawRaw(t)
	}
	for _, p := range []*[]byte{&task.Payload, &task.ResultPayload} {
		if b := rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "bytes"); len(b) > 0 {
			*p = b
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "claims") {
		task.Log = append(task.Log, fsm.Attempt{
			WorkerID: "w", Token: rapid.Uint64Range(1, wire.IDMax).Draw(t, "token"), ClaimedAt: ms.Draw(t, "claimed"),
			EndedAt: maybeMS.Draw(t, "ended"), Outcome: fsm.Outcome(rapid.IntRange(0, 6).Draw(t, "outcome")), Error: text.Draw(t, "error"),
		})
	}
	return task
}
