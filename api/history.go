package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/history"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm/latency"
)

const (
	historyMinutes    = 60
	historyMinutesMax = int(time.Duration(history.Points) * history.Interval / time.Minute)
	// historyNumberBytes is the approximate size of a number in an answer.
	historyNumberBytes    = 8
	historyPointsInMinute = int(time.Minute / history.Interval)
)

// showHistory answers GET /api/history with this node's record.
func (s *Server) showHistory(r *exchange.Request) {
	taskType, minutes, bad := parseHistory(r)
	if bad == nil {
		bad = r.RefuseFilter("task_type", taskType)
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	if !r.TakeTurn() {
		return
	}
	v := s.history.View(taskType, minutes*historyPointsInMinute)
	if !r.RoomFor(len(v.Points) * len(historyColumns) * historyNumberBytes) {
		return
	}
	r.Send(fasthttp.StatusOK, appendHistory(r.Body(), s.cfg.Node.NodeID(), taskType, &v))
}

func appendHistory(b []byte, nodeID, taskType string, v *history.View) []byte {
	b = jsonout.StringField(b, `{"success":true,"node_id":`, nodeID)
	b = jsonout.StringOrNull(b, `,"task_type":`, taskType)
	b = jsonout.IntField(b, `,"interval_ms":`, history.Interval.Milliseconds())
	b = jsonout.Moment(b, `,"since":`, v.Since)
	b = jsonout.Moment(b, `,"from":`, v.From)
	b = jsonout.BoolField(b, `,"kept":`, v.Kept)
	for _, c := range historyColumns {
		b = jsonout.List(b, c.name, len(v.Points), func(b []byte, i int) []byte {
			value, some := c.of(&v.Points[i])
			return jsonout.IntOrNull(b, "", v.Points[i].Known && some, value)
		})
	}
	return append(b, '}')
}

// historyColumns are the values of each point in an answer; some is false if the point has no such value.
var historyColumns = []struct {
	name string
	of   func(p *history.Point) (value int64, some bool)
}{
	{`,"submitted":`, func(p *history.Point) (int64, bool) { return int64(p.Submitted), true }},
	{`,"completed":`, func(p *history.Point) (int64, bool) { return int64(p.Completed), true }},
	{`,"failed":`, func(p *history.Point) (int64, bool) { return int64(p.Failed), true }},
	{`,"pending":`, func(p *history.Point) (int64, bool) { return int64(p.Pending), true }},
	{`,"claimed":`, func(p *history.Point) (int64, bool) { return int64(p.Claimed), true }},
	{`,"oldest_pending_age_ms":`, func(p *history.Point) (int64, bool) { return p.OldestPendingAgeMS, true }},
	{`,"waited_p50_ms":`, func(p *history.Point) (int64, bool) { return msOf(p.Waited.P50) }},
	{`,"waited_p99_ms":`, func(p *history.Point) (int64, bool) { return msOf(p.Waited.P99) }},
	{`,"ran_p50_ms":`, func(p *history.Point) (int64, bool) { return msOf(p.Ran.P50) }},
	{`,"ran_p99_ms":`, func(p *history.Point) (int64, bool) { return msOf(p.Ran.P99) }},
}

func msOf(b latency.Bucket) (ms int64, some bool) { return b.MS(), b != 0 }

// parseHistory reads the query of GET /api/history.
func parseHistory(r *exchange.Request) (taskType string, minutes int, bad *refuse.Refusal) {
	minutes = historyMinutes
	bad = r.ReadParams(exchange.Params{"task_type": typeParam(&taskType), "minutes": countParam(&minutes, historyMinutesMax)})
	return taskType, minutes, bad
}
