package codec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm"
)

const start = 1_772_366_400_000 // 2026-03-01T12:00:00.000Z

// TestSchedule_Answer checks each field of the answer.
func TestSchedule_Answer(t *testing.T) {
	t.Parallel()
	view := fsm.ScheduleView{
		Schedule: fsm.Schedule{
			Name: "nightly", Cron: "30 2 * * *", NextRunAt: start + 60_000,
			Task: fsm.NewTask{Type: "default", Params: []byte(`{"a": 1}`), MaxAttempts: fsm.DefaultAttempts},
		},
		CreatedAt: start, UpdatedAt: start + 1,
	}
	const first = `{"success":true,"schedule":{"name":"nightly","task":{"params":{"a": 1}},"cron":"30 2 * * *","every_ms":null,"timezone":"UTC","overlap":"skip","catch_up":"one","paused":false,` +
		`"next_run_at":"2026-03-01T12:01:00.000Z","last_task_id":null,"last_run_at":null,"skipped":0,"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.001Z"}}`
	if got := string(AppendSchedule(nil, &view)); got != first {
		t.Errorf("a new one:\n got %s\nwant %s", got, first)
	}
	view = fsm.ScheduleView{
		Schedule: fsm.Schedule{
			Name: "x", EveryMS: 5000, Paused: true, OverlapAllow: true, CatchUpSkip: true,
			Task: fsm.NewTask{
				Type: "mail", Payload: []byte("x"), Priority: -3, MaxAttempts: 0, LeaseMS: 1000, DelayMS: 20, RetentionMS: fsm.KeepNone, Group: "g", UniqueActive: true,
				Labels: []fsm.Label{{Name: "a", Value: "b"}}, Backoff: &fsm.Backoff{InitialMS: 10, MaxMS: 20, Factor: 2_000_000},
			},
		},
		LastTaskID: 12, LastRunAt: start, Skipped: 3, CreatedAt: start, UpdatedAt: start,
	}
	const second = `{"name":"x","task":{"task_type":"mail","payload":"eA==","priority":-3,"max_attempts":0,"unique":"active","delay_ms":20,"lease_ms":1000,` +
		`"backoff":{"initial_ms":10,"max_ms":20,"factor":2,"jitter":0},"retention_ms":0,"labels":{"a":"b"},"group":"g"},"cron":null,"every_ms":5000,"timezone":null,"overlap":"allow","catch_up":"skip","paused":true,` +
		`"next_run_at":null,"last_task_id":12,"last_run_at":"2026-03-01T12:00:00.000Z","skipped":3,"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.000Z"}`
	if got := string(appendSchedule(nil, &view)); got != second {
		t.Errorf("an old one:\n got %s\nwant %s", got, second)
	}
}

// TestSchedule_AnswerWithSteps checks how the steps of a schedule's task are shown.
func TestSchedule_AnswerWithSteps(t *testing.T) {
	t.Parallel()
	task := fsm.NewTask{Type: "default", MaxAttempts: fsm.DefaultAttempts, Parent: &fsm.NewParent{ByClaim: true, Continue: true, Steps: []fsm.NewStep{
		{Name: "b", DependsOn: []uint16{1, 2}, Task: fsm.NewTask{Type: "mail", Params: []byte("2"), Priority: 7, MaxAttempts: fsm.DefaultAttempts, SignalMS: 9}},
		{Name: "a", Task: fsm.NewTask{Type: "default", Payload: []byte("x"), MaxAttempts: fsm.DefaultAttempts, DelayMS: 5}},
		{Name: "c", Task: fsm.NewTask{Type: "default", Params: []byte("{}"), MaxAttempts: fsm.DefaultAttempts}},
	}}}
	const want = `{"steps":[{"step":"b","depends_on":["a","c"],"task_type":"mail","params":2,"priority":7,"wait_for_signal_ms":9},{"step":"a","payload":"eA==","delay_ms":5},{"step":"c","params":{}}],` +
		`"finalize":"claim","on_step_failure":"continue"}`
	if got := string(appendNewTask(nil, &task)); got != want {
		t.Errorf("alone:\n got %s\nwant %s", got, want)
	}
	task.Type, task.Params = "report", []byte("1")
	if got, want := string(appendNewTask(nil, &task)), `{"task_type":"report","params":1,`+want[1:]; got != want {
		t.Errorf("with params:\n got %s\nwant %s", got, want)
	}
}

// A schedule shows each option that its task, or a step of it, can have, and can be set again as it is shown.
func TestSchedule_ShowsEachOption(t *testing.T) {
	t.Parallel()
	var limits Limits
	limits.SetDefaults()
	for body, whose := range map[string]string{
		`{"params":1,%s}`: "a task", `{"steps":[{"step":"a","params":1,%s}]}`: "a step", `{%s,"steps":[{"step":"a","params":1}]}`: "a task with steps",
	} {
		for _, o := range options {
			taken, shown := false, false
			for _, value := range given[o.name] {
				task := fmt.Sprintf(body, fmt.Sprintf("%q:%s", o.name, value))
				schedule, bad := DecodeSchedule([]byte(`{"every_ms":1000,"task":`+task+`}`), &limits, nil)
				if bad != nil {
					continue
				}
				answer := string(appendNewTask(nil, &schedule.Task))
				taken, shown = true, shown || strings.Contains(answer, fmt.Sprintf("%q:", o.name))
				again, bad := DecodeSchedule([]byte(`{"every_ms":1000,"task":`+answer+`}`), &limits, nil)
				if got := string(appendNewTask(nil, &again.Task)); bad != nil || got != answer {
					t.Errorf("%s is shown as %s, and that as %s, %v", task, answer, got, bad)
				}
			}
			if taken != shown {
				t.Errorf("%s of %s is not shown", o.name, whose)
			}
		}
	}
}
