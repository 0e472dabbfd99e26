package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// TestServer_FamilyRefusals causes every refusal that is due to steps through a follower, and checks its text and
// details.
func TestServer_FamilyRefusals(t *testing.T) {
	t.Parallel()
	const blockedB = `{"steps":[{"step":"a","params":1,"max_attempts":1},{"step":"b","params":2,"depends_on":["a"]}]%s}`
	const w = `{"worker_id":"w"}`
	claimed := "POST /api/tasks/claim " + w
	failed := []string{claimed, `POST /api/tasks/2/fail {"worker_id":"w","error":"e"}`}
	const retryParent = "Retry the parent, in task_id: its failed and cancelled steps are retried with it"
	const retryDependency = "Retry that step first, in task_id, or the parent: then all of them are retried"
	asked := []string{claimed, "POST /api/tasks/3/cancel {}"} // cancelling one asks all claimed ones
	const stopping = "A claimed step is being cancelled, and would cancel again what is retried"
	const retryLater = "Retry once that step, in task_id, has ended: it does when its worker obeys, at its lease's end, or by a retry of that step"
	const stoppingA = `"task_id":2,"status":"claimed","worker_id":"w","reason":"cancel_requested"`
	const running = `"task_id":1,"status":"running","worker_id":null`
	for _, c := range []struct {
		name         string
		fields       string
		before       []string
		target, body string
		code         wire.Code
		text, advice string
		details      string
	}{
		{"claiming a task with steps", "", nil, "POST /api/tasks/1/claim", w, wire.CodeTaskNotClaimable, "Task cannot be claimed now", "Claim its steps: a task with steps is not claimed itself", running + `,"reason":"running"`},
		{"claiming a blocked step", "", nil, "POST /api/tasks/3/claim", w, wire.CodeTaskNotClaimable, "Task cannot be claimed now", "Wait until what reason names has passed", `"task_id":3,"status":"blocked","worker_id":null,"reason":"blocked"`},
		{"completing a task with steps", "", nil, "POST /api/tasks/1/complete", w, wire.CodeTaskNotClaimed, "Task is not claimed", "Claim the task first; its claim has ended or never began", running},
		{"failing a task with steps", "", nil, "POST /api/tasks/1/fail", `{"worker_id":"w","error":"e","claim_token":1}`, wire.CodeStaleClaim, "Claim is no longer valid", "Stop working on this task: its claim has ended, and the next worker that claims it does it again", running},
		{"the run_at of a task with steps", "", nil, "PATCH /api/tasks/1", `{"run_at":null}`, wire.CodeTaskNotClaimable, "A task with steps has no run_at", "Change the run_at of its steps", running + `,"reason":"running"`},
		{"deleting a step", "", nil, "DELETE /api/tasks/3", "", wire.CodeTaskNotTerminal, "A step cannot be deleted", "Delete its parent once that has ended: its steps go with it", `"task_id":3,"status":"blocked","worker_id":null,"reason":"step"`},
		{"deleting a step that has ended", "", failed, "DELETE /api/tasks/2", "", wire.CodeTaskNotTerminal, "A step cannot be deleted", "Delete its parent once that has ended: its steps go with it", `"task_id":2,"status":"failed","worker_id":"w","reason":"step"`},
		{"deleting a task with steps", "", nil, "DELETE /api/tasks/1", "", wire.CodeTaskNotTerminal, "Task has not ended", "Wait until the task is completed, failed or cancelled, then delete it", running},
		{
			"retrying a step that depends on one that failed", `,"on_step_failure":"continue","finalize":"claim"`, failed, "POST /api/tasks/3/retry", "",
			wire.CodeTaskFailed, "A step that this one depends on has failed", retryDependency, `"task_id":2,"status":"failed","worker_id":"w","reason":"dependency_ended"`,
		},
		{
			"retrying a step that depends on one that is cancelled", `,"on_step_failure":"continue","finalize":"claim"`,
			[]string{"POST /api/tasks/2/cancel {}"},
			"POST /api/tasks/3/retry", "",
			wire.CodeTaskCancelled, "A step that this one depends on is cancelled", retryDependency, `"task_id":2,"status":"cancelled","worker_id":null,"reason":"dependency_ended"`,
		},
		{"retrying a step of a failed task", "", failed, "POST /api/tasks/3/retry", "", wire.CodeTaskFailed, "The parent of the step has already failed", retryParent, `"task_id":1,"status":"failed","worker_id":null,"reason":"parent_ended"`},
		{"retrying a step of a cancelled task", "", []string{"POST /api/tasks/1/cancel {}"}, "POST /api/tasks/3/retry", "", wire.CodeTaskCancelled, "The parent of the step is cancelled", retryParent, `"task_id":1,"status":"cancelled","worker_id":null,"reason":"parent_ended"`},
		{
			"retrying a step of a completed task", `,"finalize":"claim"`, append(failed, `POST /api/tasks/1/finalize {"processor_id":"p","outcome":"completed"}`), "POST /api/tasks/2/retry", "",
			wire.CodeTaskCompleted, "The parent of the step is already completed", "Nothing is left to do: the parent has its result", `"task_id":1,"status":"completed","worker_id":"p","reason":"parent_ended"`,
		},
		{"retrying without attempts left of a step", "", failed, "POST /api/tasks/1/retry", "", wire.CodeMaxAttemptsReached, "Maximum attempts reached", "Send add_attempts to raise max_attempts", `"task_id":2,"status":"failed","worker_id":"w","attempts":1,"max_attempts":1`},
		{"retrying a completed task with steps", `,"finalize":"claim"`, append(failed, `POST /api/tasks/1/finalize {"processor_id":"p","outcome":"completed"}`), "POST /api/tasks/1/retry", "", wire.CodeTaskCompleted, "Task is already completed", "Nothing is left to do: the task has its result", `"task_id":1,"status":"completed","worker_id":"p"`},
		{"retrying a task that is being cancelled", "", []string{claimed, "POST /api/tasks/1/cancel {}"}, "POST /api/tasks/1/retry", "", wire.CodeTaskCancelled, "Task is being cancelled", "Wait until its claimed steps have ended, then retry it", running},
		{"retrying a step of a task that is being cancelled", "", []string{claimed, "POST /api/tasks/1/cancel {}"}, "POST /api/tasks/3/retry", "", wire.CodeTaskCancelled, "Task is being cancelled", "Wait until its claimed steps have ended, then retry it", running},
		{"retrying a task of which a claimed step is being cancelled", "", asked, "POST /api/tasks/1/retry", "", wire.CodeTaskCancelled, stopping, retryLater, stoppingA},
		{"retrying a step beside a claimed one that is being cancelled", "", asked, "POST /api/tasks/3/retry", "", wire.CodeTaskCancelled, stopping, retryLater, stoppingA},
		{"cancelling a failed task with steps", "", failed, "POST /api/tasks/1/cancel", "", wire.CodeTaskFailed, "Task has already failed", "Retry the task if it is to run again", `"task_id":1,"status":"failed","worker_id":null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			follower, s, _, node := setupPair(t)
			submitOne(t, s, fmt.Sprintf(blockedB, c.fields))
			tell(t, s, node, c.before)
			got := follower.call(t, c.target, c.body)
			checkRefusal(t, got, c.code, c.text, c.advice, c.details)
			if got.header["X-Claimq-Index"] == "" {
				t.Error("no X-Claimq-Index")
			}
		})
	}
}

// TestServer_FamilyLife takes a task with steps through failure, retry and its automatic end, through a follower.
func TestServer_FamilyLife(t *testing.T) {
	t.Parallel()
	s, leader, _, _ := setupPair(t)
	s.call(t, "POST /api/tasks", `{"steps":[{"step":"a","params":1,"max_attempts":1},{"step":"b","params":2,"depends_on":["a"]}]}`).good(t, 201)
	do := func(target, body, want string) {
		t.Helper()
		a := s.call(t, target, body)
		a.good(t, 200)
		task := leader.call(t, "GET /api/tasks/1", "").good(t, 200).Task
		got := []string{task.Status}
		for _, st := range task.Steps {
			got = append(got, st.Step+" "+st.Status)
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", target, body, diff)
		}
	}
	const w = `{"worker_id":"w"}`
	do("POST /api/tasks/claim", w, "running, a claimed, b blocked")
	do("POST /api/tasks/2/fail", `{"worker_id":"w","error":"e"}`, "failed, a failed, b cancelled")
	if task := s.call(t, "GET /api/tasks/1", "").good(t, 200).Task; task.Error != "step a failed: e" || task.Steps[0].Error != "e" || task.CompletedAt == nil {
		t.Errorf("failed: %+v", task)
	}
	do("POST /api/tasks/1/retry", `{"add_attempts":1}`, "running, a pending, b blocked")
	do("POST /api/tasks/3/retry", ``, "running, a pending, b blocked")
	do("POST /api/tasks/claim", w, "running, a claimed, b blocked")
	// The same call can claim the step that it unblocks.
	if a := s.call(t, "POST /api/tasks/2/complete", `{"worker_id":"w","result":"A","claim":{}}`).good(t, 200); a.Claimed == nil || a.Claimed.Task.Step != "b" || a.Claimed.Task.ParentID != 1 {
		t.Errorf("the next claim: %+v", a)
	}
	do("POST /api/tasks/3/complete", `{"worker_id":"w","result_payload":"AA=="}`, "completed, a completed, b completed")
	if task := s.call(t, "GET /api/tasks/1?wait_ms=1000", "").good(t, 200).Task; string(task.Result) != `{"a":"A","b":"AA=="}` || task.WorkerID != nil || task.ClaimToken != nil {
		t.Errorf("completed: %+v", task)
	}
	s.call(t, "DELETE /api/tasks/1", "").good(t, 200)
	s.call(t, "GET /api/tasks/3", "").refused(t, wire.CodeTaskNotFound)
}

// TestServer_FamilyBatch checks that a batch refuses an op that reaches too many tasks because of steps, and shows no
// steps.
func TestServer_FamilyBatch(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for range 10 {
		submitOne(t, s, `{`+steps(1000)+`}`)
	}
	cancel := func(n int) string {
		var ops []string
		for i := range n {
			ops = append(ops, fmt.Sprintf(`{"op":"cancel","id":%d}`, 1+1001*i))
		}
		return strings.Join(ops, ",")
	}
	const text, advice = "The ops before it and the steps that it reaches are more than 10000 tasks", "Send it in another batch"
	got := s.call(t, "POST /api/batch", `{"atomic":true,"ops":[`+cancel(10)+`]}`)
	checkRefusal(t, got, wire.CodeInvalidRequest, text, advice, `"field":"ops","failed_op":9}`)
	for _, op := range []string{
		`{"op":"claim","worker_id":"w","limit":992}`, `{"op":"claim","worker_id":"w","limit":992,"claim_request_id":"r"}`, `{"op":"complete","id":2,"worker_id":"w","claim":{"claim_request_id":"r"}}`,
		`{"op":"complete","id":2,"worker_id":"w"}`, `{"op":"retry","id":2}`, `{"op":"delete","id":1}`, `{"op":"submit",` + steps(991) + `}`,
	} {
		got := s.call(t, "POST /api/batch", `{"atomic":true,"ops":[`+cancel(9)+`,`+op+`]}`)
		checkRefusal(t, got, wire.CodeInvalidRequest, text, advice, `"field":"ops","failed_op":9}`)
	}
	got = s.call(t, "POST /api/batch", `{"ops":[`+cancel(10)+`]}`)
	if got.status != 200 || strings.Count(got.body, `"status":"cancelled"`) != 9 || !strings.Contains(got.body, `"error":"`+text+`"`) || !strings.HasSuffix(got.body, `,"failed":1}`) || strings.Contains(got.body, `"steps"`) {
		t.Errorf("%d %.2000s", got.status, got.body)
	}
}

// TestServer_FamilyActions acts on more steps than one entry may change.
func TestServer_FamilyActions(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for range 12 {
		submitOne(t, s, `{`+steps(999)+`}`)
	}
	submitOne(t, s, `{"params":1}`)
	entries := func(body, want string, most int) {
		t.Helper()
		before := len(node.Proposed)
		if got := s.acted(t, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		for _, cmd := range node.Proposed[before:] {
			changes := map[uint64]bool{}
			for _, id := range cmd.(command.Act).IDs {
				changes[(id-1)/1000] = true
			}
			if len(changes) > 10 {
				t.Errorf("an entry reaches %d families", len(changes))
			}
		}
		if n := len(node.Proposed) - before; n > most {
			t.Errorf("%s: %d entries", body, n)
		}
	}
	entries(`{"action":"retry","all":true}`, `"matched":12001,"done":0`, 2) // of parents that run nothing is known before
	// A parent's steps change with it and do not count separately.
	entries(`{"action":"cancel","filter":{"status":"running"}}`, `"matched":12,"done":12`, 2)
	if n := node.Machine.Stats(node.Stamp).Counts; n[fsm.StatusCancelled] != 12_000 || n[fsm.StatusPending] != 1 {
		t.Errorf("counts %v", n)
	}
	entries(`{"action":"retry","filter":{"status":"cancelled"}}`, `"matched":12000,"done":12`, 12)
	entries(`{"action":"cancel","filter":{"status":"pending"}}`, `"matched":11989,"done":13`, 12)
	entries(`{"action":"delete","all":true}`, `"matched":12001,"done":13`, 2)
	if n := node.Machine.Stats(node.Stamp).Counts; n != [len(n)]int64{} {
		t.Errorf("counts %v", n)
	}
}

// TestServer_WideSteps checks answers about steps with very many dependencies.
func TestServer_WideSteps(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitWide(t, s)
	t.Run("a list is cut, and goes on where it was", func(t *testing.T) { listWide(t, s) })
	t.Run("a batch leaves out what they depend on before it gets too long", func(t *testing.T) { cancelWide(t, s) })
}

func listWide(t *testing.T, s *Server) {
	listed, pages, cursor := map[uint64]bool{}, 0, ""
	for pages == 0 || cursor != "" {
		query := "GET /api/tasks?limit=1000&label=wide:&order=desc"
		if cursor != "" {
			query += "&cursor=" + cursor
		}
		got := s.call(undescribed{t}, query, "")
		if len(got.body) > listBytes+200_000 {
			t.Errorf("a page of %d bytes", len(got.body))
		}
		a := got.good(t, 200)
		for _, task := range a.Tasks {
			if listed[task.ID] || len(task.DependsOn) != thinSteps {
				t.Errorf("task %d again, or with %d names", task.ID, len(task.DependsOn))
			}
			listed[task.ID] = true
		}
		cursor = a.NextCursor
		pages++
	}
	if len(listed) != wideSteps*wideParents || pages < 2 {
		t.Errorf("%d tasks on %d pages", len(listed), pages)
	}
}

func cancelWide(t *testing.T, s *Server) {
	var ops []string
	for i := range wideParents {
		for step := range wideSteps {
			ops = append(ops, fmt.Sprintf(`{"op":"cancel","id":%d}`, i*(1+thinSteps+wideSteps)+2+thinSteps+step))
		}
	}
	got := s.call(undescribed{t}, "POST /api/batch", `{"ops":[`+strings.Join(ops, ",")+`]}`)
	if len(got.body) > codec.DependsOnBytes+500_000 {
		t.Errorf("an answer of %d bytes", len(got.body))
	}
	if n := strings.Count(got.body, `"status":"cancelled"`); n != len(ops) {
		t.Errorf("%d tasks in the answer, want %d: %.500s", n, len(ops), got.body)
	}
	if n := strings.Count(got.body, `"depends_on":`); n < 100 || n >= len(ops) {
		t.Errorf("%d of %d steps tell what they depend on", n, len(ops))
	}
}

// The numbers of submitWide.
const thinSteps, wideSteps, wideParents = 940, 55, 3

// submitWide submits tasks whose steps have very many dependencies.
func submitWide(t *testing.T, s *Server) {
	t.Helper()
	var all, names []string
	for i := range thinSteps {
		name := fmt.Sprintf("%0128d", i)
		names = append(names, `"`+name+`"`)
		all = append(all, `{"step":"`+name+`","params":1}`)
	}
	for i := range wideSteps {
		all = append(all, fmt.Sprintf(`{"step":"w%d","params":1,"labels":{"wide":""},"depends_on":[%s]}`, i, strings.Join(names, ",")))
	}
	for range wideParents {
		submitOne(undescribed{t}, s, `{"steps":[`+strings.Join(all, ",")+`]}`)
	}
}
