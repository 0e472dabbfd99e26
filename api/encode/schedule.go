package encode

import (
	"encoding/base64"
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// scheduleListBytes is how long a list of schedules gets with the params and
// payloads of their tasks; further tasks are shown without.
const scheduleListBytes = 8 << 20

// Schedules appends the answer that lists schedules.
func Schedules(b []byte, views []*fsm.ScheduleView) []byte {
	b = append(b, `{"success":true,"schedules":[`...)
	for i, v := range views {
		if i > 0 {
			b = append(b, ',')
		}
		whole := len(b)+len(v.Task.Params)+len(v.Task.Payload) <= scheduleListBytes
		b = Schedule(b, v, whole)
	}
	return append(b, "]}"...)
}

// ScheduleAnswer appends the answer that is one schedule.
func ScheduleAnswer(b []byte, v *fsm.ScheduleView) []byte {
	b = append(b, `{"success":true,"schedule":`...)
	return append(Schedule(b, v, true), '}')
}

// Schedule appends a schedule; whole says whether params and payload of
// its task are shown.
func Schedule(b []byte, v *fsm.ScheduleView, whole bool) []byte {
	b = append(b, `{"name":`...)
	b = jsonout.String(b, v.Name)
	b = append(b, `,"task":`...)
	b = appendNewTask(b, &v.Task, whole)
	if v.Cron != "" {
		b = append(b, `,"cron":`...)
		b = jsonout.String(b, v.Cron)
		b = append(b, `,"every_ms":null,"timezone":`...)
		if v.Timezone == "" {
			b = append(b, `"UTC"`...)
		} else {
			b = jsonout.String(b, v.Timezone)
		}
	} else {
		b = append(b, `,"cron":null,"every_ms":`...)
		b = strconv.AppendInt(b, v.EveryMS, 10)
		b = append(b, `,"timezone":null`...)
	}
	b = append(b, `,"overlap":`...)
	b = jsonout.Choice(b, v.OverlapAllow, "skip", "allow")
	b = append(b, `,"catch_up":`...)
	b = jsonout.Choice(b, v.CatchUpSkip, "one", "skip")
	b = append(b, `,"paused":`...)
	b = strconv.AppendBool(b, v.Paused)
	b = append(b, `,"next_run_at":`...)
	b = jsonout.Time(b, v.NextRunAt)
	b = append(b, `,"last_task_id":`...)
	b = jsonout.IntOrNull(b, v.LastTaskID != 0, int64(v.LastTaskID))
	b = append(b, `,"last_run_at":`...)
	b = jsonout.Time(b, v.LastRunAt)
	b = append(b, `,"skipped":`...)
	b = strconv.AppendUint(b, v.Skipped, 10)
	b = append(b, `,"created_at":`...)
	b = jsonout.Time(b, v.CreatedAt)
	b = append(b, `,"updated_at":`...)
	b = jsonout.Time(b, v.UpdatedAt)
	return append(b, '}')
}

// appendNewTask appends a task as it was given in a request; what has its
// default is left out. whole says whether params and payload are shown.
func appendNewTask(b []byte, t *fsm.NewTask, whole bool) []byte {
	b = append(b, '{')
	start := len(b)
	name := func(name string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(jsonout.String(b, name), ':')
	}
	if t.Type != "default" {
		name("task_type")
		b = jsonout.String(b, t.Type)
	}
	if whole && t.Params != nil {
		name("params")
		b = append(b, t.Params...)
	}
	if whole && t.Payload != nil {
		name("payload")
		b = append(base64.StdEncoding.AppendEncode(append(b, '"'), t.Payload), '"')
	}
	number := func(field string, n, byDefault int64) {
		if n != byDefault {
			name(field)
			b = strconv.AppendInt(b, n, 10)
		}
	}
	number("priority", int64(t.Priority), 0)
	number("max_attempts", int64(t.MaxAttempts), fsm.DefaultAttempts)
	if t.UniqueActive {
		name("unique")
		b = append(b, `"active"`...)
	}
	number("delay_ms", t.DelayMS, 0)
	number("lease_ms", t.LeaseMS, 0)
	if t.Backoff != nil {
		name("backoff")
		b = Backoff(b, t.Backoff)
	}
	if t.RetentionMS != 0 {
		name("retention_ms")
		b = Retention(b, t.RetentionMS)
	}
	if len(t.Labels) > 0 {
		name("labels")
		b = appendLabels(b, t.Labels)
	}
	if t.Group != "" {
		name("group")
		b = jsonout.String(b, t.Group)
	}
	return append(b, '}')
}
