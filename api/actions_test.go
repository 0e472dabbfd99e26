package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/nodes"
)

// badActions are invalid bodies of an action on many tasks.
func badActions() []badInput {
	var cases []badInput
	add := func(code wire.Code, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"POST /api/tasks/actions", body, code, field, text})
		}
	}
	add(ir, "action", "Missing required field: action", ``, `{}`, `{"filter":{}}`, `{"action":null,"filter":{}}`)
	add(ir, "action", `must be "retry", "cancel" or "delete"`, `{"action":"Retry","filter":{}}`, `{"action":"","filter":{}}`, `{"action":1,"filter":{}}`, `{"action":"complete","filter":{}}`)
	add(ir, "filter", "Missing required field: filter", `{"action":"cancel"}`, `{"action":"cancel","filter":null}`)
	add(ir, "filter", "filter is empty: it must select tasks", `{"action":"delete","filter":{}}`, `{"action":"delete","filter":{},"all":false}`,
		`{"action":"delete","filter":{"status":null,"labels":{}}}`)
	add(ir, "all", "exclude each other", `{"action":"delete","filter":{"task_type":"a"},"all":true}`)
	add(ir, "all", "true or false", `{"action":"delete","all":1}`)
	add(ir, "filter", "must be an object", `{"action":"cancel","filter":[]}`, `{"action":"cancel","filter":"all"}`)
	add(ir, "add_attempts", "only for the action retry", `{"action":"cancel","filter":{},"add_attempts":1}`, `{"action":"delete","filter":{},"add_attempts":0}`)
	add(ir, "add_attempts", "an integer from 0 to 2147483647", `{"action":"retry","filter":{},"add_attempts":-1}`, `{"action":"retry","filter":{},"add_attempts":2147483648}`)
	add(ir, "dry_run", "true or false", `{"action":"retry","filter":{},"dry_run":1}`)
	add(ir, "expect", "an integer from 0 to 9007199254740991", `{"action":"retry","filter":{},"expect":-1}`, `{"action":"retry","filter":{},"expect":1.0}`)
	add(ir, "ids", "Unknown field: ids", `{"action":"retry","ids":[1]}`)
	for field, c := range map[string]struct {
		text   string
		values []string
	}{
		"status":          {"pending, scheduled, blocked", []string{`"done"`, `""`, `1`}},
		"task_type":       {"1 to 128 of", []string{`"a b"`, `""`, `1`}},
		"parent_id":       {"an integer from 1 to 9007199254740991", []string{`0`, `"1"`, `9007199254740992`}},
		"labels":          {"an object", []string{`[]`, `"a:b"`}},
		"created_after":   {"a time in RFC 3339", []string{`"yesterday"`, `1`, `""`}},
		"error_group":     {"16 hexadecimal digits", []string{`"timeout"`, `""`, `1`, `"0000000000000000"`}},
		"created_before":  {"a time in RFC 3339", []string{`"2026-01-01"`}},
		"idempotency_key": {"Unknown field: filter.idempotency_key", []string{`"k"`}},
		"limit":           {"Unknown field: filter.limit", []string{`1`}},
	} {
		for _, value := range c.values {
			add(ir, "filter."+field, c.text, `{"action":"delete","filter":{"`+field+`":`+value+`}}`)
		}
	}
	add(iw, "filter.worker_id", "Invalid worker_id format", `{"action":"delete","filter":{"worker_id":"a b"}}`, `{"action":"delete","filter":{"worker_id":1}}`)
	add(ir, "filter.labels.a", "a string of up to 64 bytes", `{"action":"delete","filter":{"labels":{"a":1}}}`)
	return cases
}

// TestIDList checks that ids are returned as added, in parts none of which changes more than permitted.
func TestIDList(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		type member struct{ id, parent, end uint64 }
		var members []member
		last := uint64(0)
		for range rapid.IntRange(0, 12).Draw(t, "families") {
			parent := last + rapid.Uint64Range(1, 1<<40).Draw(t, "gap")
			steps := rapid.IntRange(0, 12).Draw(t, "steps")
			last = parent + uint64(steps)
			for id := parent; id <= last; id++ {
				if rapid.IntRange(0, 3).Draw(t, "listed") > 0 {
					members = append(members, member{id, parent, last})
				}
			}
		}
		part, most := rapid.IntRange(1, 20).Draw(t, "part"), rapid.IntRange(1, 30).Draw(t, "most")
		var list idList
		of := map[uint64]member{}
		for _, m := range members {
			list.add(m.id, m.parent, int(m.end-m.parent))
			of[m.id] = m
		}
		var got []uint64
		changes := func(ids []uint64) int {
			families := map[uint64]int{}
			for _, id := range ids {
				families[of[id].parent] = int(of[id].end-of[id].parent) + 1
			}
			n := 0
			for _, size := range families {
				n += size
			}
			return n
		}
		for ids := list.next(part, most); len(ids) > 0; ids = list.next(part, most) {
			if len(ids) > part || len(ids) > 1 && of[ids[0]].parent != of[ids[len(ids)-1]].parent && changes(ids) > most {
				t.Fatalf("%v change %d tasks, asked for %d ids and %d tasks", ids, changes(ids), part, most)
			}
			got = append(got, ids...)
			if next := len(got); len(ids) < part && next < len(members) && changes(append(slices.Clone(ids), members[next].id)) <= most {
				t.Fatalf("%v leave out %d", ids, members[next].id)
			}
		}
		if len(got) != len(members) {
			t.Fatalf("got %v, want %v", got, members)
		}
		for i, m := range members {
			if got[i] != m.id {
				t.Fatalf("got %v, want %v", got, members)
			}
		}
	})
}

// acted makes an action and returns its answer.
func (s *Server) acted(t *testing.T, body string) string {
	t.Helper()
	got := s.call(t, "POST /api/tasks/actions", body)
	if got.status != 200 || got.header["X-Claimq-Index"] == "" {
		t.Errorf("%s: %d %s", body, got.status, got.body)
	}
	return strings.TrimSuffix(strings.TrimPrefix(got.body, `{"success":true,`), `}`)
}

func TestServer_Actions(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for i := range 6 {
		submitOne(t, s, fmt.Sprintf(`{"params":%d,"task_type":"t%d","max_attempts":1,"labels":{"n":"%d"}}`, i, i%2, i))
	}
	statuses := func() string {
		var out []string
		for _, task := range s.call(t, "GET /api/tasks", "").good(t, 200).Tasks {
			out = append(out, fmt.Sprintf("%d:%s", task.ID, task.Status))
		}
		return strings.Join(out, " ")
	}
	check := func(body, want, after string) {
		t.Helper()
		if got := s.acted(t, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		if got := statuses(); got != after {
			t.Errorf("%s: tasks are %s", body, got)
		}
	}
	const all = "1:pending 2:pending 3:pending 4:pending 5:pending 6:pending"
	check(`{"action":"cancel","filter":{"task_type":"t0"},"dry_run":true}`, `"matched":3,"done":0,"can":3,"cannot":{}`, all)
	check(`{"action":"cancel","filter":{"task_type":"t0"},"dry_run":true,"expect":3}`, `"matched":3,"done":0,"can":3,"cannot":{}`, all)
	check(`{"action":"delete","all":true}`, `"matched":6,"done":0`, all)
	check(`{"action":"retry","filter":{"status":"failed"}}`, `"matched":0,"done":0`, all)
	if proposed := len(node.Proposed); proposed != 6 {
		t.Errorf("%d commands for what changes nothing", proposed-6)
	}
	got := s.call(t, "POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"t0"},"expect":2}`, "X-Request-ID: r-1")
	if want := `{"success":false,"error":"The filter matches 3 tasks, not the 2 expected","code":"count_mismatch",` +
		`"message":"Nothing was done: check the filter, then send matched as expect","request_id":"r-1","matched":3,"expect":2}`; got.status != 409 || got.body != want {
		t.Errorf("another count: %d %s", got.status, got.body)
	}
	s.call(t, "POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"t0"},"dry_run":true,"expect":2}`).refused(t, wire.CodeCountMismatch)
	check(`{"action":"cancel","filter":{"task_type":"t0"},"expect":3}`, `"matched":3,"done":3`, "1:cancelled 2:pending 3:cancelled 4:pending 5:cancelled 6:pending")
	check(`{"action":"cancel","all":true}`, `"matched":6,"done":3`, "1:cancelled 2:cancelled 3:cancelled 4:cancelled 5:cancelled 6:cancelled")
	proposed := len(node.Proposed)
	check(`{"action":"cancel","all":true}`, `"matched":6,"done":0`, "1:cancelled 2:cancelled 3:cancelled 4:cancelled 5:cancelled 6:cancelled")
	if len(node.Proposed) != proposed {
		t.Error("proposed to cancel what has ended")
	}
	check(`{"action":"retry","filter":{"labels":{"n":"1"}}}`, `"matched":1,"done":1`, "1:cancelled 2:pending 3:cancelled 4:cancelled 5:cancelled 6:cancelled")
	check(`{"action":"delete","filter":{"status":"cancelled","task_type":"t0"}}`, `"matched":3,"done":3`, "2:pending 4:cancelled 6:cancelled")
	s.call(t, "POST /api/tasks/2/claim", `{"worker_id":"w"}`).good(t, 200)
	s.call(t, "POST /api/tasks/2/fail", `{"worker_id":"w","error":"e"}`).good(t, 200)
	check(`{"action":"retry","filter":{"status":"failed"}}`, `"matched":1,"done":0`, "2:failed 4:cancelled 6:cancelled")
	check(`{"action":"retry","filter":{"status":"failed"},"add_attempts":2}`, `"matched":1,"done":1`, "2:pending 4:cancelled 6:cancelled")
	if task := s.call(t, "GET /api/tasks/2", "").good(t, 200).Task; task.MaxAttempts != 3 {
		t.Errorf("max_attempts %d", task.MaxAttempts)
	}
}

// submitMany submits n tasks.
func submitMany(t *testing.T, s *Server, n int) {
	t.Helper()
	for n > 0 {
		part := min(n, 1000)
		body := `{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"params":1},`, part), ",") + `]}`
		s.call(t, "POST /api/tasks", body).good(t, 200)
		n -= part
	}
}

// TestServer_ActionSteps checks that many tasks are changed in entries of a
// thousand, and only those that were counted.
func TestServer_ActionSteps(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitMany(t, s, 2500)
	var steps []command.Act
	node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		act := cmd.(command.Act)
		if len(steps) == 0 { // something happens in between
			if _, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: "default", Params: []byte("1")}}}); err != nil {
				t.Error(err)
			}
			if _, err := node.Apply(command.Cancel{ID: 1700}); err != nil {
				t.Error(err)
			}
		}
		steps = append(steps, act)
		return node.Apply(cmd)
	}
	if got := s.acted(t, `{"action":"cancel","filter":{"status":"pending"},"expect":2500}`); got != `"matched":2500,"done":2499` {
		t.Errorf("got %s", got)
	}
	next := uint64(1)
	for i, step := range steps {
		if want := min(1000, 2500-1000*i); len(step.IDs) != want || step.Filter.Status != fsm.StatusPending {
			t.Errorf("step %d: %d tasks, filter %+v", i, len(step.IDs), step.Filter)
		}
		for _, id := range step.IDs {
			if id != next {
				t.Fatalf("step %d: id %d, want %d", i, id, next)
			}
			next++
		}
	}
	if last := node.Machine.Get(2501); last.Status != fsm.StatusPending {
		t.Errorf("the task that came later is %s", last.Status)
	}
}

// TestServer_ActionTime checks that an action ends in time with what it has done, even if the node is slow at each
// step, and that a follower waits as long.
func TestServer_ActionTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		follower, leader, followerNode, node := setupPair(t)
		submitMany(t, leader, 9500)
		node.OnPropose = func(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
			select {
			case <-time.After(9 * time.Second):
				return node.Apply(cmd)
			case <-ctx.Done():
				return nodes.Proposed{}, ctx.Err()
			}
		}
		var bound time.Duration
		followerNode.OnForward = func(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
			deadline, _ := ctx.Deadline()
			bound = time.Until(deadline)
			return passOn(leader, pass, req, resp)
		}
		start := time.Now()
		if got := follower.acted(t, `{"action":"cancel","all":true}`); got != `"matched":9500,"done":3000,"more":true` {
			t.Errorf("got %s", got)
		}
		if took := time.Since(start); took != 27*time.Second {
			t.Errorf("it took %s", took)
		}
		if bound < 35*time.Second || bound > time.Minute {
			t.Errorf("the follower waits for %s", bound)
		}
		node.OnPropose = nil
		if got := follower.acted(t, `{"action":"cancel","filter":{"status":"pending"}}`); got != `"matched":6500,"done":6500` {
			t.Errorf("going on: %s", got)
		}
	})
}

// TestServer_ActionFails checks the answer when a step fails: a refusal if nothing was done, an answer if something
// was, and an unknown outcome stays unknown.
func TestServer_ActionFails(t *testing.T) {
	t.Parallel()
	unknown := fmt.Errorf("lost: %w", nodes.ErrOutcomeUnknown)
	for _, c := range []struct {
		err  error
		at   int // the step that fails
		code wire.Code
		want string
	}{
		{nodes.ErrOverloaded, 0, wire.CodeOverloaded, ""},
		{nodes.ErrLevel, 0, wire.CodeInvalidRequest, ""},
		{nodes.ErrNoLeader, 0, wire.CodeNoLeader, ""},
		{unknown, 0, wire.CodeOutcomeUnknown, ""},
		{unknown, 2, wire.CodeOutcomeUnknown, ""},
		{context.DeadlineExceeded, 1, wire.CodeOutcomeUnknown, ""},
		{nodes.ErrOverloaded, 1, "", `"matched":2500,"done":1000,"more":true`},
		{nodes.ErrNotLeader, 2, "", `"matched":2500,"done":2000,"more":true`},
		{nodes.ErrShuttingDown, 2, "", `"matched":2500,"done":2000,"more":true`},
	} {
		s, node := setup(t)
		submitMany(t, s, 2500)
		step := 0
		node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
			if step++; step > c.at {
				return nodes.Proposed{}, c.err
			}
			return node.Apply(cmd)
		}
		const body = `{"action":"cancel","all":true}`
		if c.code != "" {
			s.call(t, "POST /api/tasks/actions", body).refused(t, c.code)
			continue
		}
		if got := s.acted(t, body); got != c.want {
			t.Errorf("%v at step %d: %s", c.err, c.at, got)
		}
	}
}

// TestServer_ActionDrained checks that a draining server ends an action after the current step.
func TestServer_ActionDrained(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitMany(t, s, 2500)
	node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		s.Drain()
		return node.Apply(cmd)
	}
	if got := s.acted(t, `{"action":"cancel","all":true}`); got != `"matched":2500,"done":1000,"more":true` {
		t.Errorf("got %s", got)
	}
}

// TestServer_ActionsBound checks that an action over the bound is refused.
func TestServer_ActionsBound(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1}`)
	began, goOn := make(chan struct{}), make(chan struct{})
	node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		began <- struct{}{}
		<-goOn
		return node.Apply(cmd)
	}
	const body = `{"action":"cancel","all":true}`
	ended := make(chan struct{})
	for range actionsMax {
		go func() {
			s.acted(t, body)
			ended <- struct{}{}
		}()
		<-began
	}
	s.call(t, "POST /api/tasks/actions", body).refused(t, wire.CodeOverloaded)
	close(goOn)
	for range actionsMax {
		<-ended
	}
	node.OnPropose = nil
	s.acted(t, body)
}

// TestServer_ActionUncounted checks that a failed read while tasks are counted ends the action before anything is
// done.
func TestServer_ActionUncounted(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitMany(t, s, 2500)
	reads := 0
	node.OnRead = func(context.Context, uint64) error {
		if reads++; reads == 2 {
			return nodes.ErrShuttingDown
		}
		return nil
	}
	s.call(t, "POST /api/tasks/actions", `{"action":"cancel","all":true}`).refused(t, wire.CodeShuttingDown)
	if last := node.Proposed[len(node.Proposed)-1]; fmt.Sprintf("%T", last) != "command.Submit" {
		t.Errorf("proposed %T", last)
	}
}
