package encode

import (
	"cmp"
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// Schedules appends the answer with a page of schedules. next is the name after which the next page begins, or ""
// after the last page.
func Schedules(b []byte, views []*fsm.ScheduleView, next string) []byte {
	b = jsonout.List(b, `{"success":true,"schedules":`, len(views), func(b []byte, i int) []byte { return Schedule(b, views[i]) })
	return append(jsonout.StringOrNull(b, `,"next":`, next), '}')
}

// ScheduleAnswer appends the answer with one schedule.
func ScheduleAnswer(b []byte, v *fsm.ScheduleView) []byte {
	b = append(b, `{"success":true,"schedule":`...)
	return append(Schedule(b, v), '}')
}

// Schedule appends a schedule.
func Schedule(b []byte, v *fsm.ScheduleView) []byte {
	b = jsonout.StringField(b, `{"name":`, v.Name)
	b = appendNewTask(append(b, `,"task":`...), &v.Task)
	if v.Cron != "" {
		b = jsonout.StringField(b, `,"cron":`, v.Cron)
		b = jsonout.StringField(b, `,"every_ms":null,"timezone":`, cmp.Or(v.Timezone, "UTC"))
	} else {
		b = jsonout.IntField(b, `,"cron":null,"every_ms":`, v.EveryMS)
		b = append(b, `,"timezone":null`...)
	}
	b = jsonout.Choice(b, `,"overlap":`, v.OverlapAllow, "skip", "allow")
	b = jsonout.Choice(b, `,"catch_up":`, v.CatchUpSkip, "one", "skip")
	b = jsonout.BoolField(b, `,"paused":`, v.Paused)
	b = jsonout.TimeField(b, `,"next_run_at":`, v.NextRunAt)
	b = jsonout.IntOrNull(b, `,"last_task_id":`, v.LastTaskID != 0, int64(v.LastTaskID))
	b = jsonout.TimeField(b, `,"last_run_at":`, v.LastRunAt)
	b = jsonout.UintField(b, `,"skipped":`, v.Skipped)
	b = jsonout.TimeField(b, `,"created_at":`, v.CreatedAt)
	b = jsonout.TimeField(b, `,"updated_at":`, v.UpdatedAt)
	return append(b, '}')
}

// appendNewTask appends a task as it was given in a request, without fields that have their defaults.
func appendNewTask(b []byte, t *fsm.NewTask) []byte {
	b = append(b, '{')
	start := len(b)
	name := func(name string) {
		b = append(jsonout.String(jsonout.Comma(b, start), name), ':')
	}
	if t.Type != "default" {
		name("task_type")
		b = jsonout.String(b, t.Type)
	}
	if t.Params != nil {
		name("params")
		b = append(b, t.Params...)
	}
	if t.Payload != nil {
		name("payload")
		b = jsonout.Base64(b, "", t.Payload)
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
		b = Backoff(b, "", t.Backoff)
	}
	if t.RetentionMS != 0 {
		name("retention_ms")
		b = Retention(b, "", t.RetentionMS)
	}
	if len(t.Labels) > 0 {
		name("labels")
		b = appendLabels(b, "", t.Labels)
	}
	if t.Group != "" {
		name("group")
		b = jsonout.String(b, t.Group)
	}
	return append(b, '}')
}
