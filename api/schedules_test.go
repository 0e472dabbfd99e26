package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// TestSchedule_BadInput sends invalid schedules.
func TestSchedule_BadInput(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	var cases []badInput
	add := func(code wire.Code, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"PUT /api/schedules/a", body, code, field, text})
		}
	}
	with := func(fields string) string { return `{"task":{"params":1},` + fields + `}` }
	task := func(fields string) string { return `{"every_ms":1000,"task":{` + fields + `}}` }
	add(ir, "task", "Missing required field: task", ``, `{}`, `{"every_ms":1000}`, `{"every_ms":1000,"task":null}`)
	add(it, "task", "must be an object", `{"task":1,"every_ms":1000}`, `{"task":[],"every_ms":1000}`)
	add(it, "task.params", "Missing required field: task.params", task(``), task(`"params":null`))
	add(it, "task.payload", "params and payload are both given", task(`"params":1,"payload":"AA=="`))
	add(it, "task.priority", "an integer from -2147483648", task(`"params":1,"priority":"high"`))
	add(it, "task.backoff.initial_ms", "Missing required field: task.backoff.initial_ms", task(`"params":1,"backoff":{}`))
	add(it, "task.labels.a", "up to 64 bytes", task(`"params":1,"labels":{"a":7}`))
	add(it, "task.idempotency_key", "a schedule's task cannot have it", task(`"params":1,"idempotency_key":"k"`))
	add(it, "task.traceparent", "a schedule's task cannot have it", task(`"params":1,"traceparent":"x"`))
	add(it, "task.run_at", "a schedule's task cannot have it", task(`"run_at":"2026-11-21T12:00:00Z","params":1`))
	add(it, "task.expires_at", "a schedule's task cannot have it", task(`"params":1,"expires_at":"2026-11-21T12:00:00Z"`))
	add(it, "task.steps", "an array of 1 to 1000 steps", task(`"params":1,"steps":[]`))
	add(it, "task.steps[1].depends_on[0]", "no step is named c", task(`"steps":[{"step":"a","params":1},{"step":"b","params":1,"depends_on":["c"]}]`))
	add(it, "task.steps[0].run_at", "a schedule's task cannot have it", task(`"steps":[{"step":"a","params":1,"run_at":"2026-11-21T12:00:00Z"}]`))
	add(it, "task.steps[0].expires_at", "a schedule's task cannot have it", task(`"steps":[{"step":"a","params":1,"expires_at":"2026-11-21T12:00:00Z"}]`))
	add(it, "task.steps[0].retention_ms", "a step cannot have retention_ms", task(`"steps":[{"step":"a","params":1,"retention_ms":1}]`))
	add(it, "task.steps[0].prio", "Unknown field: task.steps[0].prio", task(`"steps":[{"step":"a","params":1,"prio":1}]`))
	add(it, "task.delay_ms", "a task with steps cannot have it", task(`"delay_ms":5,"steps":[{"step":"a","params":1}]`))
	add(it, "task.finalize", "only for a task with steps", task(`"params":1,"finalize":"claim"`))
	add(it, "task.prio", "Unknown field: task.prio", task(`"params":1,"prio":1`))
	add(ir, "cron", "cron or every_ms", `{"task":{"params":1}}`, with(`"cron":null`), with(`"cron":null,"every_ms":null`))
	add(ir, "every_ms", "cron and every_ms are both given", with(`"cron":"@daily","every_ms":1000`))
	add(ir, "every_ms", "must be an integer from 1000 to 31536000000", with(`"every_ms":999`), with(`"every_ms":0`), with(`"every_ms":31536000001`), with(`"every_ms":"1s"`), with(`"every_ms":1e3`))
	add(ir, "cron", "a cron expression of five fields", with(`"cron":7`), with(`"cron":""`), with(`"cron":"`+strings.Repeat("*", 257)+`"`), with(`"cron":"* * *\n* *"`))
	add(ir, "cron", `Invalid cron: the minute has "61", which is not a number from 0 to 59`, with(`"cron":"61 * * * *"`))
	add(ir, "cron", "it must have five fields", with(`"cron":"* * * *"`), with(`"cron":"0 * * * * *"`), with(`"cron":"whenever"`))
	add(ir, "cron", `"@never" is none of @hourly`, with(`"cron":"@never"`))
	add(ir, "cron", "its time never comes", with(`"cron":"0 0 30 2 *"`))
	add(ir, "timezone", "timezone is given without cron", with(`"every_ms":1000,"timezone":"UTC"`))
	add(ir, "timezone", "the name of a time zone", with(`"cron":"@daily","timezone":1`), with(`"cron":"@daily","timezone":""`),
		with(`"cron":"@daily","timezone":"Mars/Olympus"`), with(`"cron":"@daily","timezone":"Local"`), with(`"cron":"@daily","timezone":"../UTC"`), with(`"cron":"@daily","timezone":"`+strings.Repeat("a", 65)+`"`))
	add(ir, "overlap", `must be "skip" or "allow"`, with(`"every_ms":1000,"overlap":"no"`), with(`"every_ms":1000,"overlap":true`), with(`"every_ms":1000,"overlap":""`))
	add(ir, "catch_up", `must be "one" or "skip"`, with(`"every_ms":1000,"catch_up":"all"`), with(`"every_ms":1000,"catch_up":1`))
	add(ir, "paused", "must be true or false", with(`"every_ms":1000,"paused":"no"`))
	add(ir, "name", "Unknown field: name", with(`"every_ms":1000,"name":"a"`))
	for _, name := range []string{"", "a%20b", "a%2Fb", "a/b", "%C3%A9", "%zz", "%ff", strings.Repeat("x", 129)} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			cases = append(cases, badInput{method + " /api/schedules/" + name, with(`"every_ms":1000`), ir, "name", "1 to 128 of A-Z"})
		}
	}
	cases = append(cases,
		badInput{"GET /api/schedules?order=name", "", ir, "order", "Unknown query parameter: order"},
		badInput{"GET /api/schedules?limit=0", "", ir, "limit", "must be an integer from 1 to 1000"},
		badInput{"GET /api/schedules?limit=1001", "", ir, "limit", "must be an integer from 1 to 1000"},
		badInput{"GET /api/schedules?after=a/b", "", ir, "after", "1 to 128 of A-Z"},
		badInput{"GET /api/schedules/a?limit=1", "", ir, "limit", "Unknown query parameter: limit"},
		badInput{"PUT /api/schedules/a?x=1", with(`"every_ms":1000`), ir, "x", "Unknown query parameter: x"},
		badInput{"POST /api/schedules", `{}`, wire.CodeMethodNotAllowed, "", "Method not allowed"},
		badInput{"PATCH /api/schedules/a", `{}`, wire.CodeMethodNotAllowed, "", "Method not allowed"},
	)
	for _, c := range cases {
		got := s.call(t, c.target, c.body)
		f := got.refused(t, c.code)
		field, _ := f["field"].(string)
		if text := f["error"].(string); field != c.field || !strings.Contains(text, c.text) {
			t.Errorf("%s %s:\n field %q, want %q\n error %q, want %q in it", c.target, c.body, field, c.field, text, c.text)
		}
	}
	if len(node.Proposed) > 0 {
		t.Errorf("proposed all the same: %+v", node.Proposed)
	}
}

// TestSchedule_Command checks what a PUT proposes.
func TestSchedule_Command(t *testing.T) {
	t.Parallel()
	plain := fsm.NewTask{Type: "default", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts}
	whole := fsm.NewTask{
		Type: "mail", Payload: []byte("x"), Priority: -3, MaxAttempts: 5, LeaseMS: 1000, DelayMS: 20, RetentionMS: fsm.KeepForever, Group: "g",
		Labels: []fsm.Label{{Name: "a", Value: "b"}}, Backoff: &fsm.Backoff{InitialMS: 10, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000},
	}
	parent := fsm.NewTask{Type: "default", MaxAttempts: fsm.DefaultAttempts, Parent: &fsm.NewParent{ByClaim: true, Continue: true, Steps: []fsm.NewStep{
		{Name: "b", DependsOn: []uint16{1}, Task: fsm.NewTask{Type: "mail", Params: []byte("2"), MaxAttempts: fsm.DefaultAttempts}},
		{Name: "a", Task: fsm.NewTask{Type: "default", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts, DelayMS: 5}},
	}}}
	for body, want := range map[string]fsm.Schedule{
		`{"task":{"steps":[{"step":"b","task_type":"mail","params":2,"depends_on":["a"]},{"step":"a","params":1,"delay_ms":5}],"finalize":"claim","on_step_failure":"continue"},"every_ms":1000}`: {
			Name: "a:b", Task: parent, EveryMS: 1000, NextRunAt: nodetest.Start + 1000,
		},
		`{"task":{"params":1},"every_ms":1000}`:                                      {Name: "a:b", Task: plain, EveryMS: 1000, NextRunAt: nodetest.Start + 1000},
		`{"task":{"params":1,"idempotency_key":null,"run_at":null},"every_ms":1000}`: {Name: "a:b", Task: plain, EveryMS: 1000, NextRunAt: nodetest.Start + 1000},
		`{"task":{"params":1},"cron":"30 14 * * *","timezone":"UTC"}`:                {Name: "a:b", Task: plain, Cron: "30 14 * * *", NextRunAt: nodetest.Start + 9_000_000, NextWall: nodetest.Start + 9_000_000},
		`{"task":{"params":1},"cron":"30 14 * * *","timezone":"Europe/Helsinki"}`:    {Name: "a:b", Task: plain, Cron: "30 14 * * *", Timezone: "Europe/Helsinki", NextRunAt: nodetest.Start + 1_800_000, NextWall: nodetest.Start + 9_000_000},
		`{"task":{"params":1},"every_ms":31536000000,"paused":true,"cron":null,"overlap":null,"catch_up":null}`: {
			Name: "a:b", Task: plain, EveryMS: 31_536_000_000, Paused: true,
		},
		`{"task":{"task_type":"mail","payload":"eA==","priority":-3,"max_attempts":5,"lease_ms":1000,"delay_ms":20,"retention_ms":-1,"group":"g","labels":{"a":"b"},"backoff":{"initial_ms":10}},
			"every_ms":5000,"overlap":"allow","catch_up":"skip","paused":false}`: {
			Name: "a:b", Task: whole, EveryMS: 5000, OverlapAllow: true, CatchUpSkip: true, NextRunAt: nodetest.Start + 5000,
		},
	} {
		s, node := setup(t)
		var got command.Command
		node.ProposeTo(func(cmd command.Command) { got = cmd })
		s.call(t, "PUT /api/schedules/a%3Ab", body).refused(t, wire.CodeOverloaded)
		if diff := cmp.Diff(command.Command(command.SetSchedule{Schedule: want}), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		s.call(t, "DELETE /api/schedules/a%3Ab", "").refused(t, wire.CodeOverloaded)
		if diff := cmp.Diff(command.Command(command.DeleteSchedule{Name: "a:b"}), got); diff != "" {
			t.Errorf("delete (-want +got):\n%s", diff)
		}
	}
}

// TestSchedule_Refused checks how errors of the node and the level are answered.
func TestSchedule_Refused(t *testing.T) {
	t.Parallel()
	const body = `{"task":{"params":1},"every_ms":1000}`
	for _, c := range []struct {
		read, propose error
		code          wire.Code
	}{
		{nodes.ErrNoLeader, nil, wire.CodeNoLeader},
		{context.DeadlineExceeded, nil, wire.CodeOverloaded}, // nothing was written
		{nil, context.DeadlineExceeded, wire.CodeOutcomeUnknown},
		{nil, nodes.ErrLevel, wire.CodeInvalidRequest},
		{nil, nodes.ErrTooLarge, wire.CodePayloadTooLarge},
	} {
		s, node := setup(t)
		node.OnRead = func(context.Context, uint64) error { return c.read }
		node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) { return nodes.Proposed{}, c.propose }
		s.call(t, "PUT /api/schedules/a", body).refused(t, c.code)
	}
	s, node := setup(t)
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
		return nodes.Proposed{Index: 7, Result: fsm.Result{Code: fsm.CodeInvalidRequest}}, nil
	}
	if f := s.call(t, "PUT /api/schedules/a", body).refused(t, wire.CodeInvalidRequest); f["error"] != "There are too many schedules" {
		t.Errorf("over the bound: %v", f)
	}
}

// schedules decodes the answer of a schedule's call.
func (a answer) schedules(t testing.TB, status int) wire.Schedules {
	t.Helper()
	a.good(t, status)
	var out wire.Schedules
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("answer is no schedule: %v: %s", err, a.body)
	}
	return out
}

// TestSchedules_Pages walks lists of schedules: each is shown whole and once, whatever bounds the pages, and no page
// exceeds its bound.
func TestSchedules_Pages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		bytes   int // of the params of each
		query   string
		want    []int // schedules of each page
		largest int   // bytes of a page
	}{
		{"all", 10, "limit=1000", []int{20}, 20 << 10},
		{"by number", 10, "limit=7", []int{7, 7, 6}, 20 << 10},
		{"by bytes", 1_000_000, "limit=1000", []int{8, 8, 4}, schedulesBytes},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _ := setup(t)
			caller := testing.TB(t)
			if test.bytes > 10 {
				caller = undescribed{t}
			}
			for i := range 20 {
				s.call(caller, fmt.Sprintf("PUT /api/schedules/s%02d", i), `{"task":{"params":"`+strings.Repeat("x", test.bytes)+`"},"every_ms":60000}`).good(t, 201)
			}
			var names []string
			var sizes []int
			for after := ""; ; {
				got := s.call(caller, "GET /api/schedules?"+test.query+after, "")
				if len(got.body) > test.largest {
					t.Errorf("a page of %d bytes", len(got.body))
				}
				page := got.schedules(t, 200)
				sizes = append(sizes, len(page.Schedules))
				for _, one := range page.Schedules {
					if names = append(names, one.Name); len(one.Task.Params) < test.bytes {
						t.Errorf("%s has %d bytes of params", one.Name, len(one.Task.Params))
					}
				}
				if page.Next == "" {
					break
				}
				after = "&after=" + page.Next
			}
			if !slices.Equal(sizes, test.want) || len(names) != 20 || !slices.IsSorted(names) || len(slices.Compact(names)) != 20 {
				t.Errorf("pages of %v, want %v: %v", sizes, test.want, names)
			}
			if n := s.core.port.Answers.Reserved(); n != 0 {
				t.Errorf("%d bytes are reserved", n)
			}
		})
	}
}

// TestSchedules_reserve ensures that a page reserves its memory before it is made.
func TestSchedules_reserve(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, func(c *Config) { c.AnswersBytes = 1 << 20 })
	s.call(t, "PUT /api/schedules/a", `{"task":{"params":"`+strings.Repeat("x", 100_000)+`"},"every_ms":60000}`).good(t, 201)
	s.core.port.Answers.TryReserve(1 << 20)
	if f := s.call(t, "GET /api/schedules", "").refused(t, wire.CodeOverloaded); f["reason"] != "answers" {
		t.Errorf("no memory: %v", f)
	}
}

// TestSchedule_Life sets a schedule, replaces and deletes it.
func TestSchedule_Life(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	at := func(ms int64) *time.Time { v := time.UnixMilli(nodetest.Start + ms).UTC(); return &v }
	if list := s.call(t, "GET /api/schedules", ""); list.body != `{"success":true,"schedules":[],"next":null}` || list.status != 200 {
		t.Errorf("an empty list: %d %s", list.status, list.body)
	}
	s.call(t, "GET /api/schedules/b", "").refused(t, wire.CodeScheduleNotFound)
	s.call(t, "DELETE /api/schedules/b", "").refused(t, wire.CodeScheduleNotFound)

	put := s.call(t, "PUT /api/schedules/b", `{"task":{"params":{"n":1}},"every_ms":5000}`)
	set := put.schedules(t, 201).Schedule
	if set.Name != "b" || *set.EveryMS != 5000 || !set.NextRunAt.Equal(*at(5000)) || !set.CreatedAt.Equal(*at(0)) || set.LastTaskID != nil || put.header["X-Claimq-Index"] == "" {
		t.Errorf("new: %+v", put)
	}
	s.call(t, "PUT /api/schedules/a", `{"task":{"params":2},"cron":"30 2 * * *","timezone":"Europe/Paris"}`).schedules(t, 201)
	if list := s.call(t, "GET /api/schedules?consistency=stale", "").schedules(t, 200).Schedules; len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" || *list[0].Timezone != "Europe/Paris" {
		t.Errorf("list: %+v", list)
	}

	// An unchanged plan continues, whatever else changes; a different one starts again.
	node.Advance(2000)
	set = s.call(t, "PUT /api/schedules/b", `{"task":{"params":3},"every_ms":5000,"overlap":"allow"}`).schedules(t, 200).Schedule
	if !set.NextRunAt.Equal(*at(5000)) || !set.CreatedAt.Equal(*at(0)) || !set.UpdatedAt.Equal(*at(2000)) || set.Overlap != "allow" {
		t.Errorf("the same plan: %+v", set)
	}
	set = s.call(t, "PUT /api/schedules/b", `{"task":{"params":3},"every_ms":6000}`).schedules(t, 200).Schedule
	if !set.NextRunAt.Equal(*at(8000)) {
		t.Errorf("another plan: %+v", set)
	}
	set = s.call(t, "PUT /api/schedules/b", `{"task":{"params":3},"every_ms":6000,"paused":true}`).schedules(t, 200).Schedule
	if set.NextRunAt != nil || !set.Paused {
		t.Errorf("paused: %+v", set)
	}
	set = s.call(t, "PUT /api/schedules/b", `{"task":{"params":3},"every_ms":6000}`).schedules(t, 200).Schedule
	if !set.NextRunAt.Equal(*at(8000)) {
		t.Errorf("paused no more: %+v", set)
	}

	node.Mu.Lock()
	version := node.Machine.Schedule("b").Version
	node.Mu.Unlock()
	node.Advance(6000)
	if _, err := node.Apply(command.RunSchedules{Items: []command.ScheduleRun{{Name: "b", Version: version, Slot: nodetest.Start + 8000, Next: nodetest.Start + 14_000}}}); err != nil {
		t.Fatal(err)
	}
	got := s.call(t, "GET /api/schedules/b", "").schedules(t, 200).Schedule
	if got.LastTaskID == nil || *got.LastTaskID != 1 || !got.LastRunAt.Equal(*at(8000)) || !got.NextRunAt.Equal(*at(14_000)) {
		t.Errorf("after a slot: %+v", got)
	}
	set = s.call(t, "PUT /api/schedules/b", `{"task":{"params":4},"every_ms":6000}`).schedules(t, 200).Schedule
	if set.LastTaskID == nil || *set.LastTaskID != 1 || !set.CreatedAt.Equal(*at(0)) || !set.NextRunAt.Equal(*at(14_000)) {
		t.Errorf("replaced after a slot: %+v", set)
	}
	if done := s.call(t, "DELETE /api/schedules/b", "").good(t, 200); done.Deleted != 1 {
		t.Errorf("delete: %+v", done)
	}
	s.call(t, "GET /api/schedules/b", "").refused(t, wire.CodeScheduleNotFound)
	if set := s.call(t, "PUT /api/schedules/b", `{"task":{"params":4},"every_ms":6000}`).schedules(t, 201).Schedule; set.LastTaskID != nil {
		t.Errorf("new again: %+v", set)
	}
}

// TestSlots asks for the next times of a plan: by default ten of them from now on.
func TestSlots(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for query, want := range map[string]string{
		"cron=@yearly&limit=2&after=2000-01-01T00:00:00Z":                          `"2001-01-01T00:00:00.000Z","2002-01-01T00:00:00.000Z"`,
		"cron=0+12+*+*+1&timezone=Europe/Paris&after=2000-07-01T00:00:00Z&limit=2": `"2000-07-03T10:00:00.000Z","2000-07-10T10:00:00.000Z"`,
		"every_ms=1500&limit=2&after=2000-01-01T00:00:00.25Z":                      `"2000-01-01T00:00:01.750Z","2000-01-01T00:00:03.250Z"`,
		"cron=0+0+30+2+*": ``,
	} {
		if got := s.call(t, "GET /api/slots?"+query, "").body; got != `{"success":true,"slots":[`+want+`]}` {
			t.Errorf("%s: %s", query, got)
		}
	}
	var answer wire.Slots
	before := time.Now()
	if err := json.Unmarshal([]byte(s.call(t, "GET /api/slots?cron=@yearly", "").body), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Slots) != slotsLimit || answer.Slots[0].Year() != before.UTC().Year()+1 {
		t.Errorf("from now on: %v", answer.Slots)
	}
}
