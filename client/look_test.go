package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

// Wait repeats its request until the task has ended.
func TestClient_Wait(t *testing.T) {
	t.Parallel()
	s, c := talk(t,
		says(200, `{"success":true,"task":{"id":17,"status":"claimed"}}`), breaks,
		says(200, `{"success":true,"task":{"id":17,"status":"completed","result":7}}`))
	task, err := c.Wait(t.Context(), "17")
	if err != nil {
		t.Fatal(err)
	}
	if task.Status != StatusCompleted || string(task.Result) != "7" {
		t.Errorf("got %+v", task)
	}
	for _, r := range s.requests() {
		if r.path != "/api/tasks/17?wait_ms=6000" {
			t.Errorf("asked %s, want a wait of 6 s", r.path)
		}
	}
	if got := len(s.requests()); got != 3 {
		t.Errorf("%d requests", got)
	}
}

func TestClient_Wait_ends(t *testing.T) {
	t.Parallel()
	_, c := talk(t, says(200, `{"success":true,"task":{"id":17,"status":"pending"}}`))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, "17"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a task that does not end: %v", err)
	}
	_, c = talk(t, refuses(wire.CodeTaskNotFound))
	if _, err := c.Wait(t.Context(), "17"); !errors.Is(err, ErrTaskNotFound) {
		t.Errorf("no task: %v", err)
	}
	if _, err := c.Wait(t.Context(), "x"); !errors.Is(err, ErrTaskNotFound) {
		t.Errorf("no id: %v", err)
	}
}

func TestClient_Why(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"ahead":0,"reasons":[{"code":"limit_reached","message":"M","holders":[{"task_id":3,"worker_id":"w1"}]},`+
		`{"code":"scheduled","message":"N","run_at":"2026-01-02T03:04:05.006Z"},{"code":"group_behind","message":"O","id":4},{"code":"no_worker","message":"P","last_asked_at":null}]}`),
		says(200, `{"success":true,"ahead":null,"reasons":[]}`))
	got, err := c.Why(t.Context(), "17")
	want := &Why{Reasons: []Reason{
		{Code: "limit_reached", Message: "M", Holders: []Holder{{TaskID: "3", WorkerID: "w1"}}},
		{Code: "scheduled", Message: "N", At: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)},
		{Code: "group_behind", Message: "O", TaskID: "4"},
		{Code: "no_worker", Message: "P"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := c.Why(t.Context(), "17"); err != nil || got.Ahead != -1 || len(got.Reasons) != 0 {
		t.Errorf("of a task that does not wait: %+v, %v", got, err)
	}
	if path := s.requests()[0].path; path != "/api/tasks/17/why" {
		t.Errorf("asked %s", path)
	}
}

func TestClient_Workers(t *testing.T) {
	t.Parallel()
	_, c := talk(t, says(200, `{"success":true,"workers":[{"worker_id":"w1","claimed":2,"task_ids":[3,4],"last_seen_at":"2026-01-02T03:04:05.006Z"},{"worker_id":"w2","claimed":0,"task_ids":[],"last_seen_at":null}]}`))
	got, err := c.Workers(t.Context())
	want := []WorkerInfo{{ID: "w1", Claimed: 2, TaskIDs: []string{"3", "4"}, LastSeenAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)}, {ID: "w2"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestClient_Slots(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"slots":["2026-01-05T01:30:00.000Z","2026-01-06T01:30:00.000Z"]}`), says(200, `{"success":true,"slots":[]}`), refuses(wire.CodeForbidden))
	after := time.Date(2026, 1, 2, 4, 0, 0, 5e8, time.FixedZone("", 3600))
	got, err := c.Slots(t.Context(), SlotsQuery{Cron: "30 2 * * 1-5", Timezone: "Europe/Prague", After: after, Limit: 2})
	want := []time.Time{time.Date(2026, 1, 5, 1, 30, 0, 0, time.UTC), time.Date(2026, 1, 6, 1, 30, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := c.Slots(t.Context(), SlotsQuery{Every: 90 * time.Second}); len(got) != 0 || err != nil {
		t.Errorf("of a plan that never runs: %v, %v", got, err)
	}
	if _, err := c.Slots(t.Context(), SlotsQuery{}); !errors.Is(err, ErrForbidden) {
		t.Errorf("refused: %v", err)
	}
	for i, want := range []string{
		"/api/slots?after=2026-01-02T03%3A00%3A00.5Z&cron=30+2+%2A+%2A+1-5&limit=2&timezone=Europe%2FPrague", "/api/slots?every_ms=90000", "/api/slots",
	} {
		if got := s.requests()[i].path; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
}

func TestClient_Schedules(t *testing.T) {
	t.Parallel()
	const set = `{"success":true,"schedule":{"name":"a/b","task":{"task_type":"mail","params":{ "x": 1 },"priority":5},"cron":"@daily","every_ms":null,"timezone":"Europe/Prague",` +
		`"overlap":"allow","catch_up":"skip","paused":false,"next_run_at":"2026-01-03T00:00:00.000Z","last_task_id":7,"last_run_at":"2026-01-02T00:00:00.000Z","skipped":2,` +
		`"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}}`
	s, c := talk(t, breaks, says(201, set))
	task, err := NewTask("mail", map[string]int{"x": 1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.SetSchedule(t.Context(), Schedule{Name: "a/b", Task: task, Cron: "@daily", Timezone: "Europe/Prague", OverlapAllow: true, CatchUpSkip: true})
	if err != nil {
		t.Fatal(err)
	}
	want := request{
		method: "PUT", path: "/api/schedules/a%2Fb", key: "secret", redirect: true,
		body: `{"task":{"params":{"x":1},"task_type":"mail"},"cron":"@daily","timezone":"Europe/Prague","overlap":"allow","catch_up":"skip"}`,
	}
	sent := s.requests()
	if diff := cmp.Diff(want, sent[0], cmp.AllowUnexported(request{})); diff != "" || len(sent) != 2 {
		t.Errorf("%d requests (-want +got):\n%s", len(sent), diff)
	}
	if got.Name != "a/b" || got.Cron != "@daily" || got.LastTaskID != "7" || got.Skipped != 2 || got.Task.TaskType != "mail" || got.Task.MaxAttempts != 0 ||
		string(got.Task.Payload) != `{ "x": 1 }` || got.NextRunAt.Day() != 3 || got.LastRunAt.Day() != 2 || !got.OverlapAllow || !got.CatchUpSkip {
		t.Errorf("got %+v", got)
	}
}

// The steps of a schedule's task are sent, and read back as they can be sent again.
func TestClient_ScheduleWithSteps(t *testing.T) {
	t.Parallel()
	const task = `{"steps":[{"step":"sum","depends_on":["get"],"params":2,"task_type":"part","group":"g","delay_ms":2000,"share_key":"ann","wait_for_signal_ms":9000},{"step":"get","params":1,"task_type":"part","delay_ms":0,"max_attempts":0}],` +
		`"task_type":"report","finalize":"claim","on_step_failure":"continue"}`
	const set = `{"success":true,"schedule":{"name":"a","task":` + task + `,"cron":null,"every_ms":60000,"timezone":null,"overlap":"skip","catch_up":"one","paused":false,` +
		`"next_run_at":null,"last_task_id":null,"last_run_at":null,"skipped":0,"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}}`
	s, c := talk(t, says(201, set), says(200, set))
	report := Task{TaskType: "report", Finalize: FinalizeClaim, OnStepFailure: ContinueOnStepFailure}
	report.AddStep("sum", Task{TaskType: "part", Payload: []byte("2"), Group: "g", Delay: 2 * time.Second, ShareKey: "ann", WaitForSignal: 9 * time.Second}, "get")
	report.AddStep("get", Task{TaskType: "part", Payload: []byte("1"), Delay: NoDelay, MaxAttempts: UnlimitedAttempts})
	got, err := c.SetSchedule(t.Context(), Schedule{Name: "a", Task: report, Every: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetSchedule(t.Context(), *got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	if err := json.Unmarshal([]byte(`{"every_ms":60000,"task":`+task+`}`), &want); err != nil {
		t.Fatal(err)
	}
	for i, r := range s.requests() {
		sent := map[string]any{}
		if err := json.Unmarshal([]byte(r.body), &sent); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
	}
}

// Schedules requests all pages of the list.
func TestClient_SchedulesPages(t *testing.T) {
	t.Parallel()
	const one = `{"name":"%s","task":{"params":1},"cron":"@daily","every_ms":null,"timezone":"UTC","overlap":"skip","catch_up":"one","paused":false,"next_run_at":null,"last_task_id":null,` +
		`"last_run_at":null,"skipped":0,"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}`
	page := func(next string, names ...string) string {
		list := make([]string, len(names))
		for i, name := range names {
			list[i] = fmt.Sprintf(one, name)
		}
		return `{"success":true,"schedules":[` + strings.Join(list, ",") + `],"next":` + next + `}`
	}
	s, c := talk(t, says(200, page(`"b:"`, "a", "b:")), says(200, page("null", "c")))
	got, err := c.Schedules(t.Context())
	if err != nil || len(got) != 3 || got[0].Name != "a" || got[1].Name != "b:" || got[2].Name != "c" {
		t.Errorf("%+v, %v", got, err)
	}
	if sent := s.requests(); sent[0].path != "/api/schedules" || sent[1].path != "/api/schedules?after=b%3A" {
		t.Errorf("asked %+v", sent)
	}
}

// If the repeat of a deletion finds no schedule, that is not an error.
func TestClient_DeleteSchedule(t *testing.T) {
	t.Parallel()
	_, c := talk(t, breaks, refuses(wire.CodeScheduleNotFound))
	if err := c.DeleteSchedule(t.Context(), "a"); err != nil {
		t.Errorf("repeated: %v", err)
	}
	_, c = talk(t, refuses(wire.CodeScheduleNotFound))
	if err := c.DeleteSchedule(t.Context(), "a"); !errors.Is(err, ErrScheduleNotFound) {
		t.Errorf("of none: %v", err)
	}
}

// Act continues while the server says that there is more.
func TestClient_Act(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"matched":5,"done":3,"more":true}`), says(200, `{"success":true,"matched":2,"done":1}`))
	got, err := c.Act(t.Context(), Action{
		Action: ActionRetry, Filter: Filter{Status: StatusFailed, ParentID: "7", Labels: map[string]string{"a": "b"}}, AddAttempts: 2, Expect: new(int64(5)),
	})
	if diff := cmp.Diff(Acted{Matched: 5, Done: 4}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const filter = `"filter":{"status":"failed","parent_id":7,"labels":{"a":"b"}},"add_attempts":2`
	sent := s.requests()
	if want := `{"action":"retry",` + filter + `,"expect":5}`; sent[0].body != want {
		t.Errorf("sent %s\nwant %s", sent[0].body, want)
	}
	if want := `{"action":"retry",` + filter + `}`; len(sent) != 2 || sent[1].body != want {
		t.Errorf("sent %+v, want the rest without expect", sent)
	}
}

// A step that did nothing is repeated, but only a few times.
func TestClient_Act_idleSteps(t *testing.T) {
	t.Parallel()
	const idle = `{"success":true,"matched":5,"done":0,"more":true}`
	_, c := talk(t, says(200, `{"success":true,"matched":5,"done":2,"more":true}`), says(200, idle), says(200, idle), says(200, `{"success":true,"matched":3,"done":3}`))
	if got, err := c.Act(t.Context(), Action{Action: ActionDelete, All: true}); err != nil || got.Done != 5 {
		t.Errorf("got %+v, %v", got, err)
	}
	s, c := talk(t, says(200, `{"success":true,"matched":5,"done":2,"more":true}`), says(200, idle))
	got, err := c.Act(t.Context(), Action{Action: ActionDelete, All: true})
	if err == nil || !strings.Contains(err.Error(), "there is more to do") || got.Done != 2 || len(s.requests()) != 1+idleStepsMax {
		t.Errorf("got %+v, %v after %d requests", got, err, len(s.requests()))
	}
}

// A dry run tells how many tasks could be changed, and why the others could not.
func TestClient_Act_dryRun(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"matched":5,"done":0,"can":2,"cannot":{"max_attempts_reached":2,"nothing_to_do":1}}`))
	got, err := c.Act(t.Context(), Action{Action: ActionRetry, All: true, DryRun: true})
	want := Acted{Matched: 5, Can: 2, Cannot: map[string]int64{"max_attempts_reached": 2, NothingToDo: 1}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if sent := s.requests(); len(sent) != 1 || sent[0].body != `{"action":"retry","all":true,"dry_run":true}` {
		t.Errorf("sent %+v", sent)
	}
}

func TestClient_Act_isNotRepeated(t *testing.T) {
	t.Parallel()
	s, c := talk(t, breaks)
	if _, err := c.Act(t.Context(), Action{Action: ActionDelete, All: true}); !errors.Is(err, ErrOutcomeUnknown) || len(s.requests()) != 1 || s.requests()[0].body != `{"action":"delete","all":true}` {
		t.Errorf("%d requests, %v", len(s.requests()), err)
	}
	_, c = talk(t, refuses(wire.CodeCountMismatch))
	if _, err := c.Act(t.Context(), Action{Action: ActionDelete, All: true, Expect: new(int64(1))}); !errors.Is(err, ErrCountMismatch) {
		t.Errorf("another count: %v", err)
	}
}

// Events ends where the trail ended when it began, including all events of that entry. Neither page boundaries, nor
// later events, nor the index of the log change that.
func TestClient_Events(t *testing.T) {
	t.Parallel()
	page := func(sub, next, place string) reply {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Claimq-Index", "2") // from another cluster's log
			says(200, `{"success":true,"events":[{"index":9,"sub":`+sub+`,"time":"2026-01-02T03:04:05.006Z","task_id":3,"event":"claimed","worker_id":"w1","claim_token":5,"attempt":1,"message":"m"}],"next":"`+next+`","place":"`+place+`"}`)(w, r)
		}
	}
	empty := says(200, `{"success":true,"events":[],"next":"9.2","place":"9"}`)
	walk := func(replies ...reply) (got []Event, sent []request) {
		s, c := talk(t, replies...)
		for e, err := range c.Events(t.Context(), EventFilter{TaskType: "mail", WorkerID: "w1", Events: []string{"claimed", "failed"}}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		return got, s.requests()
	}
	event := func(place string) Event {
		return Event{Place: place, Time: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), TaskID: "3", Event: "claimed", WorkerID: "w1", Token: 5, Attempt: 1, Message: "m"}
	}
	got, sent := walk(page("1", "9.1", "9"), page("2", "9.2", "9"), empty)
	if diff := cmp.Diff([]Event{event("9.1"), event("9.2")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(sent) != 3 || sent[1].path != "/api/events?after=9.1&event=claimed&event=failed&limit=1000&task_type=mail&worker_id=w1" {
		t.Errorf("sent %+v", sent)
	}
	got, sent = walk(page("1", "9.1", ""), page("2", "9.2", ""), empty) // from a node that does not tell where its trail ends
	if len(got) != 2 || len(sent) != 3 {
		t.Errorf("of an older node it sent %+v and got %+v", sent, got)
	}
	got, sent = walk(page("1", "9.1", "9"), page("2", "10.0", "12"))
	if len(got) != 2 || len(sent) != 2 {
		t.Errorf("behind the newest event it sent %+v and got %+v", sent, got)
	}
}

// streams answers with a stream and then closes the connection.
func streams(lines ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(strings.Join(lines, "\n") + "\n"))
	}
}

// event formats one event of a stream.
func event(place string) string {
	index, sub, _ := strings.Cut(place, ".")
	return "id: " + place + "\ndata: {\"index\":" + index + ",\"sub\":" + sub + ",\"event\":\"claimed\",\"time\":\"2026-01-02T03:04:05.006Z\"}\n"
}

// Follow continues at another node, and yields each event once.
func TestClient_Follow(t *testing.T) {
	t.Parallel()
	first, one := node(t, streams(": hello", "id: 4.0", "", event("5.0"), event("5.1")), breaks)
	second, two := node(t, refuses(wire.CodeNoLeader), streams(event("6.0"), event("8.2"), "event: error", `data: {"success":false,"error":"E","code":"events_gone","oldest":"90.0"}`, ""))
	c := clientOf(t, one.URL, two.URL)
	var got []string
	var last error
	for e, err := range c.Follow(t.Context(), EventFilter{TaskType: "mail"}) {
		if err != nil {
			last = err
			break
		}
		got = append(got, e.Place)
	}
	if diff := cmp.Diff([]string{"5.0", "5.1", "6.0", "8.2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.Is(last, ErrEventsGone) {
		t.Errorf("the end is %v", last)
	}
	if path := first.requests()[0].path; path != "/api/events?task_type=mail" {
		t.Errorf("began with %s", path)
	}
	if path := second.requests()[0].path; path != "/api/events?after=5.1&task_type=mail" {
		t.Errorf("went on with %s", path)
	}
}

// An event that was cut off by the end of its connection is read again.
func TestClient_Follow_midway(t *testing.T) {
	t.Parallel()
	s, c := talk(t, streams(event("5.0"), "id: 5.1"), streams(event("5.1")))
	var got []string
	for e, err := range c.Follow(t.Context(), EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Place); len(got) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"5.0", "5.1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if path := s.requests()[1].path; path != "/api/events?after=5.0" {
		t.Errorf("went on with %s", path)
	}
}

// A stream that begins at the trail's end names that place, so that nothing is missed if it breaks before the first
// event.
func TestClient_Follow_fromItsPlace(t *testing.T) {
	t.Parallel()
	s, c := talk(t, streams("id: 4.0", ""), refuses(wire.CodeEventsGone))
	for _, err := range c.Follow(t.Context(), EventFilter{}) {
		if !errors.Is(err, ErrEventsGone) {
			t.Errorf("got %v", err)
		}
	}
	if sent := s.requests(); len(sent) != 2 || sent[1].path != "/api/events?after=4.0" {
		t.Errorf("sent %+v", sent)
	}
}

func TestClient_Follow_ends(t *testing.T) {
	t.Parallel()
	_, c := talk(t, streams(event("5.0")))
	for e := range c.Follow(t.Context(), EventFilter{}) {
		if e.Place != "5.0" {
			t.Errorf("got %+v", e)
		}
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("enough")
	for _, err := range c.Follow(ctx, EventFilter{}) {
		if err != nil && !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}
		cancel(why)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Follow(t.Context(), EventFilter{}) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}

func TestWithTraceparent(t *testing.T) {
	t.Parallel()
	var got string
	_, c := talk(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Traceparent")
		says(201, `{"success":true,"created":true,"task":{"id":17,"traceparent":"t"}}`)(w, r)
	})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if _, err := c.Submit(WithTraceparent(t.Context(), trace), Task{Payload: []byte("1")}); err != nil || got != trace {
		t.Errorf("sent %q, %v", got, err)
	}
}

// A malformed one is ignored, even if it would make the request invalid.
func TestWithTraceparent_malformed(t *testing.T) {
	t.Parallel()
	for _, trace := range []string{"00-x", "a\r\nb", ""} {
		sent := make(chan string, 1)
		_, c := talk(t, func(w http.ResponseWriter, r *http.Request) {
			sent <- strings.Join(r.Header.Values("Traceparent"), "|")
			says(201, pendingTask)(w, r)
		})
		ctx, cancel := context.WithTimeout(WithTraceparent(t.Context(), trace), time.Minute)
		defer cancel()
		if _, err := c.Submit(ctx, Task{Payload: []byte("1")}); err != nil {
			t.Fatalf("%q: %v", trace, err)
		}
		if got := <-sent; got != "" {
			t.Errorf("%q is sent as %q", trace, got)
		}
	}
}
