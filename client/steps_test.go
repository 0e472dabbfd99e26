package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

const submittedParent = `{"success":true,"created":true,"task":{"id":17,"task_type":"report","status":"running","finalize":"auto","on_step_failure":"fail","steps":[` +
	`{"step":"fetch","id":18,"task_type":"fetch","status":"pending","depends_on":[]},{"step":"merge","id":19,"task_type":"default","status":"blocked","depends_on":["fetch"],"error":"once"}]}}`

func TestSubmitWorkflow(t *testing.T) {
	t.Parallel()
	s, c := talk(t, breaks, says(201, submittedParent))
	parent := Task{TaskType: "report", IdempotencyKey: "k", Finalize: FinalizeClaim, OnStepFailure: ContinueOnStepFailure}
	parent.AddStep("fetch", Task{TaskType: "fetch", Payload: []byte(`{ "a" :1}`)})
	parent.AddStep("merge", Task{Payload: []byte{0, 255}, MaxAttempts: 2, Group: "g", Lease: time.Second}, "fetch", "é")
	got, err := c.SubmitWorkflow(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Workflow{ID: "17", Steps: map[string]string{"fetch": "18", "merge": "19"}, Created: true}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	want := `{"steps":[{"step":"fetch","params":{ "a" :1},"task_type":"fetch"},` +
		`{"step":"merge","depends_on":["fetch","é"],"payload":"AP8=","max_attempts":2,"lease_ms":1000,"group":"g"}],` +
		`"task_type":"report","idempotency_key":"k","finalize":"claim","on_step_failure":"continue"}`
	sent := s.requests()
	if len(sent) != 2 || sent[0].body != want || sent[1].body != want {
		t.Errorf("%d requests, the first %s\nwant %s", len(sent), sent[0].body, want)
	}
}

// If a random key is taken, an earlier try has taken it.
func TestSubmitWorkflow_created(t *testing.T) {
	t.Parallel()
	found := strings.Replace(submittedParent, `"created":true`, `"created":false`, 1)
	for key, want := range map[string]bool{"": true, "mine": false} {
		_, c := talk(t, says(200, found))
		parent := Task{IdempotencyKey: key}
		parent.AddStep("fetch", Task{Payload: []byte("1")})
		if got, err := c.SubmitWorkflow(t.Context(), parent); err != nil || got.Created != want {
			t.Errorf("with key %q: %+v, %v", key, got, err)
		}
	}
}

func TestSubmitWorkflow_refusals(t *testing.T) {
	t.Parallel()
	ok := []byte("1")
	step := func(task Task) Task {
		return Task{Steps: []Step{{Name: "fine", Task: Task{Payload: ok}}, {Name: "bad", Task: task}}}
	}
	for name, test := range map[string]struct {
		task Task
		want string // in the error
	}{
		"no steps":        {Task{Payload: ok}, "no steps"},
		"empty steps":     {Task{Payload: ok, Steps: []Step{}}, "no steps"},
		"empty payload":   {step(Task{}), `step 2 of 2, "bad": the payload is empty`},
		"key":             {step(Task{Payload: ok, IdempotencyKey: "k"}), `step 2 of 2, "bad": a step has no idempotency key`},
		"unique":          {step(Task{Payload: ok, Unique: UniqueActive}), "unique"},
		"retention":       {step(Task{Payload: ok, Retention: KeepNone}), "retention"},
		"steps":           {step(Task{Payload: ok, Steps: []Step{{Name: "a"}}}), "cannot have steps"},
		"finalize":        {step(Task{Payload: ok, Finalize: FinalizeAuto}), "cannot have steps"},
		"on step failure": {step(Task{Payload: ok, OnStepFailure: FailOnStepFailure}), "cannot have steps"},
		"depends on":      {step(Task{Payload: ok, DependsOn: []string{"fine"}}), "Step.DependsOn"},
		"lease":           {step(Task{Payload: ok, Lease: -1}), "lease"},
	} {
		s, c := talk(t, says(201, submittedParent))
		if _, err := c.SubmitWorkflow(t.Context(), test.task); !errors.Is(err, ErrInvalidTask) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if n := len(s.requests()); n != 0 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	if _, err := (&Task{Payload: ok, Steps: []Step{}}).encode("k"); !errors.Is(err, ErrInvalidTask) {
		t.Errorf("steps that are empty: %v", err)
	}
}

func TestFromWire_steps(t *testing.T) {
	t.Parallel()
	decode := func(body string) *Task {
		var w wire.Answer
		if err := json.Unmarshal([]byte(body), &w); err != nil {
			t.Fatal(err)
		}
		return fromWire(w.Task)
	}
	parent := decode(submittedParent)
	want := &Task{
		ID: "17", TaskType: "report", MaxAttempts: UnlimitedAttempts, Status: StatusRunning, Finalize: FinalizeAuto, OnStepFailure: FailOnStepFailure,
		Steps: []Step{
			{Name: "fetch", Task: Task{ID: "18", TaskType: "fetch", Status: StatusPending}},
			{Name: "merge", DependsOn: []string{"fetch"}, Task: Task{ID: "19", TaskType: "default", Status: StatusBlocked, Error: "once"}},
		},
	}
	if diff := cmp.Diff(want, parent); diff != "" {
		t.Errorf("parent: -want +got\n%s", diff)
	}
	step := decode(`{"task":{"id":19,"status":"blocked","parent_id":17,"step":"merge","depends_on":["fetch"]}}`)
	if diff := cmp.Diff(&Task{ID: "19", MaxAttempts: UnlimitedAttempts, Status: StatusBlocked, ParentID: "17", StepName: "merge", DependsOn: []string{"fetch"}}, step); diff != "" {
		t.Errorf("step: -want +got\n%s", diff)
	}
	if first := decode(`{"task":{"id":18,"parent_id":17,"step":"fetch","depends_on":[]}}`); first.DependsOn != nil {
		t.Errorf("depends on %#v, want nil for none", first.DependsOn)
	}
}

// Steps count as tasks in the limit of one request.
func TestSubmitMany_countsSteps(t *testing.T) {
	t.Parallel()
	var sizes []int
	_, c := talk(t, acceptAll(&sizes))
	tasks := make([]Task, 25)
	for i := range tasks {
		for range 999 {
			tasks[i].AddStep("a", Task{Payload: []byte("1")})
		}
	}
	if _, err := c.SubmitMany(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{10, 10, 5}, sizes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDependencyResults(t *testing.T) {
	t.Parallel()
	s, c := talk(t,
		says(200, `{"success":true,"tasks":[{"id":18,"step":"fetch","result":"no"},{"id":19,"step":"left","result":{ "n": 1 }}],"next_cursor":"c1"}`),
		says(200, `{"success":true,"tasks":[{"id":20,"step":"right","result_payload":"AP8="},{"id":21,"step":"none"}],"next_cursor":"c2"}`))
	step := &Task{ID: "22", ParentID: "17", StepName: "merge", DependsOn: []string{"left", "right", "none"}}
	got, err := c.DependencyResults(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"left": []byte(`{ "n": 1 }`), "right": {0, 255}, "none": nil}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// It does not ask for the remaining pages.
	var paths []string
	for _, r := range s.requests() {
		paths = append(paths, r.path)
	}
	if diff := cmp.Diff([]string{"/api/tasks?include=result&limit=200&parent_id=17", "/api/tasks?cursor=c1&include=result&limit=200&parent_id=17"}, paths); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDependencyResults_ofNone(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"tasks":[],"next_cursor":null}`))
	if got, err := c.DependencyResults(t.Context(), &Task{ID: "18", ParentID: "17"}); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	if _, err := c.DependencyResults(t.Context(), &Task{ID: "19", ParentID: "17", DependsOn: []string{"gone"}}); !errors.Is(err, ErrTaskNotFound) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("of a step that is not there: %v", err)
	}
}

func TestDependencyResults_ofTheClaim(t *testing.T) {
	t.Parallel()
	s, c := talkInMemory(t,
		says(200, `{"success":true,"task":{"id":4,"claim_token":1,"status":"claimed","parent_id":1,"step":"c","depends_on":["a","b"],"dependencies":{"a":{"result":7},"b":{"result_payload":"AQI="}}}}`),
		says(200, `{"success":true,"task":{"id":4,"claim_token":1,"status":"claimed","parent_id":1,"step":"c","depends_on":["a","b"],"dependencies":{"a":{"result":7}},"dependencies_left_out":["b"]}}`),
		says(200, `{"success":true,"tasks":[{"id":2,"step":"a","result":7},{"id":3,"step":"b","result":8}]}`),
	)
	defer c.Close()
	for _, want := range []map[string][]byte{{"a": []byte("7"), "b": {1, 2}}, {"a": []byte("7"), "b": []byte("8")}} {
		claim, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w", IncludeDependencies: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.DependencyResults(t.Context(), claim.Task)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, -want +got\n%s", err, diff)
		}
	}
	if got := s.requests(); len(got) != 3 || fmt.Sprint(got[0].field(t, "include")) != "[dependencies]" {
		t.Errorf("%d requests, %+v", len(got), got[0])
	}
}

func TestClaim_AddSteps(t *testing.T) {
	t.Parallel()
	added := `{"success":true,"parent_id":1,"added":1,"steps":[{"step":"part","id":31,"task_type":"part","status":"pending","depends_on":[]},{"step":"sum","id":32,"task_type":"default","status":"blocked","depends_on":["part"]}]}`
	s, cl := claimFor(t, breaks, says(200, added), refuses(wire.CodeInvalidTask), refuses(wire.CodeStaleClaim))
	steps := []Step{{Name: "part", Task: Task{TaskType: "part", Payload: []byte(`{ "a":1}`)}}, {Name: "sum", DependsOn: []string{"part", "plan"}, Task: Task{Payload: []byte{0xff}}}}
	ids, err := cl.AddSteps(t.Context(), steps...)
	if diff := cmp.Diff(map[string]string{"part": "31", "sum": "32"}, ids); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, want := range []error{ErrInvalidTask, ErrStaleClaim} {
		if _, err := cl.AddSteps(t.Context(), steps...); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if _, err := cl.AddSteps(t.Context(), Step{Name: "empty"}); !errors.Is(err, ErrInvalidTask) {
		t.Errorf("of a malformed step: %v", err)
	}
	got := s.requests()[1:]
	want := `{"steps":[{"step":"part","params":{ "a":1},"task_type":"part"},{"step":"sum","depends_on":["part","plan"],"payload":"/w=="}],"worker_id":"w1","claim_token":5}`
	if len(got) != 4 || got[0].path != "/api/tasks/17/steps" || got[0].body != want || got[1].body != want {
		t.Errorf("requests %+v\nwant 4 of %s", got, want)
	}
	if cl.isOver() {
		t.Error("the claim is taken for settled")
	}
}
