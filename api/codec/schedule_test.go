package codec

import (
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
