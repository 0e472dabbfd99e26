package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/latency"
)

const (
	historyMinutes = 60
	// historyNumberBytes is the approximate size of a number in an answer.
	historyNumberBytes = 8
)

// showHistory answers GET /api/history.
func showHistory(r *request) {
	taskType, minutes, bad := parseHistory(r)
	if bad == nil {
		bad = r.refuseFilter("task_type", taskType)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	var v fsm.HistoryView
	if r.read(func(m *fsm.Machine, now fsm.Stamp) { v = m.History(taskType, minutes, now) }) &&
		r.reserveAnswer(len(v.Minutes)*len(historyColumns)*historyNumberBytes) {
		r.send(fasthttp.StatusOK, appendHistory(r.buffer(), taskType, &v))
	}
}

func appendHistory(b []byte, taskType string, v *fsm.HistoryView) []byte {
	b = append(b, `{"success":true`...)
	b = jsonout.StringOrNull(b, `,"task_type":`, taskType)
	b = jsonout.IntField(b, `,"interval_ms":`, time.Minute.Milliseconds())
	b = jsonout.Moment(b, `,"since":`, moment(v.Since))
	b = jsonout.Moment(b, `,"from":`, moment(v.From))
	b = jsonout.Moment(b, `,"to":`, moment(v.To))
	b = jsonout.BoolField(b, `,"kept":`, v.Kept)
	for _, c := range historyColumns {
		b = jsonout.List(b, c.name, len(v.Minutes), func(b []byte, i int) []byte {
			value, some := c.of(&v.Minutes[i], v.To)
			return jsonout.IntOrNull(b, "", some, value)
		})
	}
	return append(b, '}')
}

// historyColumns are the values of each minute in an answer that ends at to; some is false if the minute has no such
// value.
var historyColumns = []struct {
	name string
	of   func(m *fsm.Minute, to int64) (value int64, some bool)
}{
	{`,"submitted":`, func(m *fsm.Minute, _ int64) (int64, bool) { return int64(m.Submitted), true }},
	{`,"completed":`, func(m *fsm.Minute, _ int64) (int64, bool) { return int64(m.Completed), true }},
	{`,"failed":`, func(m *fsm.Minute, _ int64) (int64, bool) { return int64(m.Failed), true }},
	{`,"pending":`, func(m *fsm.Minute, _ int64) (int64, bool) { return int64(m.Pending), true }},
	{`,"claimed":`, func(m *fsm.Minute, _ int64) (int64, bool) { return int64(m.Claimed), true }},
	{`,"oldest_pending_age_ms":`, func(m *fsm.Minute, to int64) (int64, bool) { return m.OldestAge(to), true }},
	{`,"waited_p50_ms":`, func(m *fsm.Minute, _ int64) (int64, bool) { return msOf(m.Times[fsm.Waited].P50) }},
	{`,"waited_p99_ms":`, func(m *fsm.Minute, _ int64) (int64, bool) { return msOf(m.Times[fsm.Waited].P99) }},
	{`,"ran_p50_ms":`, func(m *fsm.Minute, _ int64) (int64, bool) { return msOf(m.Times[fsm.Ran].P50) }},
	{`,"ran_p99_ms":`, func(m *fsm.Minute, _ int64) (int64, bool) { return msOf(m.Times[fsm.Ran].P99) }},
}

// moment returns the time; zero for 0, which stands for none.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func msOf(bucket uint8) (ms int64, some bool) { return latency.Bucket(bucket).MS(), bucket != 0 }

// parseHistory reads the query of GET /api/history.
func parseHistory(r *request) (taskType string, minutes int, bad *refuse.Refusal) {
	minutes = historyMinutes
	bad = r.readParams(params{"task_type": typeParam(&taskType), "minutes": countParam(&minutes, fsm.HistoryMinutes)})
	return taskType, minutes, bad
}
