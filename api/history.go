package api

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/latency"
)

const (
	historyMinutes    = 60
	historyMinutesMax = int(time.Duration(historyPoints) * historyInterval / time.Minute)
	// historyNumberBytes is the approximate size of a number in an answer.
	historyNumberBytes    = 8
	historyPointsInMinute = int(time.Minute / historyInterval)
)

// showHistory answers GET /api/history with this node's record.
func (s *Server) showHistory(r *request) {
	taskType, minutes, bad := parseHistory(r)
	if bad == nil {
		bad = r.refuseFilter("task_type", taskType)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	if !r.takeTurn() {
		return
	}
	v := s.history.View(taskType, minutes*historyPointsInMinute)
	if !r.roomFor(len(v.Points) * len(historyColumns) * historyNumberBytes) {
		return
	}
	r.send(fasthttp.StatusOK, appendHistory(r.buffer(), s.cfg.Node.NodeID(), taskType, &v))
}

func appendHistory(b []byte, nodeID, taskType string, v *historyView) []byte {
	b = jsonout.StringField(b, `{"success":true,"node_id":`, nodeID)
	b = jsonout.StringOrNull(b, `,"task_type":`, taskType)
	b = jsonout.IntField(b, `,"interval_ms":`, historyInterval.Milliseconds())
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
	of   func(p *historyPoint) (value int64, some bool)
}{
	{`,"submitted":`, func(p *historyPoint) (int64, bool) { return int64(p.Submitted), true }},
	{`,"completed":`, func(p *historyPoint) (int64, bool) { return int64(p.Completed), true }},
	{`,"failed":`, func(p *historyPoint) (int64, bool) { return int64(p.Failed), true }},
	{`,"pending":`, func(p *historyPoint) (int64, bool) { return int64(p.Pending), true }},
	{`,"claimed":`, func(p *historyPoint) (int64, bool) { return int64(p.Claimed), true }},
	{`,"oldest_pending_age_ms":`, func(p *historyPoint) (int64, bool) { return p.OldestPendingAgeMS, true }},
	{`,"waited_p50_ms":`, func(p *historyPoint) (int64, bool) { return msOf(p.Waited.P50) }},
	{`,"waited_p99_ms":`, func(p *historyPoint) (int64, bool) { return msOf(p.Waited.P99) }},
	{`,"ran_p50_ms":`, func(p *historyPoint) (int64, bool) { return msOf(p.Ran.P50) }},
	{`,"ran_p99_ms":`, func(p *historyPoint) (int64, bool) { return msOf(p.Ran.P99) }},
}

func msOf(b latency.Bucket) (ms int64, some bool) { return b.MS(), b != 0 }

// parseHistory reads the query of GET /api/history.
func parseHistory(r *request) (taskType string, minutes int, bad *refuse.Refusal) {
	minutes = historyMinutes
	bad = r.readParams(params{"task_type": typeParam(&taskType), "minutes": countParam(&minutes, historyMinutesMax)})
	return taskType, minutes, bad
}

const (
	// historyInterval is the time between two points.
	historyInterval = 10 * time.Second
	// historyPoints is the number of points kept: 6 h.
	historyPoints = int(6 * time.Hour / historyInterval)
	// historyTypesMax bounds the types that have their own points.
	historyTypesMax = fsm.FollowedMax
	// seriesBytes is the approximate memory for the points of a type.
	seriesBytes = historyPoints * 40
	// readMax limits how long a point may wait for the state.
	readMax = historyInterval / 2
)

// historySource is the part of package api's Node that is needed here.
type historySource interface {
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)
	Ready() error
}

// historyPoint covers one interval: tasks submitted and ended in it, how long the tasks claimed or completed in it took, and
// the numbers at its end.
type historyPoint struct {
	Submitted, Completed, Failed uint32
	Pending, Claimed             uint32
	Waited, Ran                  percentiles
	Known                        bool // false: the node did not read its state at the beginning or the end of the interval
	OldestPendingAgeMS           int64
}

// percentiles are the median and the 99th percentile; empty if there were no values.
type percentiles struct{ P50, P99 latency.Bucket }

// historySeries holds the points of a type, or of all tasks.
type historySeries struct {
	points []historyPoint // that of interval n is at n % Points
	last   fsm.Activity
	seen   int64 // the last interval at whose end the type existed
}

// history holds the points of a node: for every ten seconds how many tasks there were, how they ended and how long they
// took. It is kept only in memory. It reads the node's own state and changes nothing. Its methods are safe for concurrent use.
type history struct {
	node  historySource
	types int // limit of types with points

	mu    sync.Mutex // guards what follows
	since time.Time  // the beginning of the first interval; zero: recording has not begun
	// newest is the last interval that has ended; the first one is 1.
	newest int64
	looked int64 // the last one at whose end the state was read
	total  *historySeries
	byType map[string]*historySeries
	full   bool // when the state was last read, there were types without points
}

// newHistory returns an empty history of the node, which takes about this many bytes.
func newHistory(node historySource, bytes int64) *history {
	return &history{node: node, types: int(min(max(bytes/int64(seriesBytes)-1, 0), historyTypesMax)), byType: make(map[string]*historySeries)}
}

// Run records points until ctx ends. It begins once the node is ready, because what the node applies before that
// happened earlier.
func (h *history) Run(ctx context.Context) {
	ticker := time.NewTicker(historyInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		h.look(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// look makes the point of the interval that ends now.
func (h *history) look(ctx context.Context) {
	h.mu.Lock()
	begun := !h.since.IsZero()
	h.mu.Unlock()
	if !begun && h.node.Ready() != nil {
		return
	}
	var all fsm.Activity
	var types []typeActivity
	there := 0
	ctx, cancel := context.WithTimeout(ctx, readMax)
	defer cancel()
	_, err := h.node.ReadStale(ctx, 0, func(m *fsm.Machine, now fsm.Stamp) {
		all, there = m.Activity(now), m.TypeCount(now)
		types = h.typesOf(m, now)
	})
	if err != nil {
		return // the gap shows it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if !begun {
		h.since, h.total = now, newHistorySeries()
	}
	end := int64(now.Sub(h.since).Round(historyInterval) / historyInterval)
	h.advance(end)
	follows := begun && h.looked == end-1
	h.total.add(end, all, follows)
	for _, t := range types {
		s := h.byType[t.name]
		known := follows
		if s == nil {
			s = newHistorySeries()
			h.byType[t.name] = s
			known = follows && !h.full // otherwise the type existed before
		}
		if t.there {
			s.seen = end
			there--
		}
		if end-s.seen >= int64(historyPoints) {
			delete(h.byType, t.name)
			continue
		}
		s.add(end, t.Activity, known)
	}
	h.full = there > 0
	h.looked = end
}

// typeActivity is the activity of a type, the zero value if the type does not exist.
type typeActivity struct {
	name  string
	there bool
	fsm.Activity
}

// typesOf returns the activity of each type that has points. If there is room, it adds types whose latencies are
// counted. Only Run calls it.
func (h *history) typesOf(m *fsm.Machine, now fsm.Stamp) []typeActivity {
	types := make([]typeActivity, 0, h.types)
	look := func(name string) {
		a, there := m.TypeActivity(name, now)
		types = append(types, typeActivity{name, there, a})
	}
	for name := range h.byType {
		look(name)
	}
	for _, name := range m.FollowedTypes(now) {
		if h.byType[name] == nil && len(types) < h.types {
			look(name)
		}
	}
	return types
}

func newHistorySeries() *historySeries {
	return &historySeries{points: make([]historyPoint, historyPoints)}
}

// advance makes room for the intervals up to end.
func (h *history) advance(end int64) {
	for n := max(h.newest+1, end-int64(historyPoints)+1); n <= end; n++ {
		h.total.points[n%int64(historyPoints)] = historyPoint{}
		for _, s := range h.byType {
			s.points[n%int64(historyPoints)] = historyPoint{}
		}
	}
	h.newest = end
}

// add makes the point of interval n. known says whether the previous add was at its beginning.
func (s *historySeries) add(n int64, a fsm.Activity, known bool) {
	s.points[n%int64(historyPoints)] = historyPoint{
		Submitted: grown(s.last.Submitted, a.Submitted), Completed: grown(s.last.Completed, a.Completed), Failed: grown(s.last.Failed, a.Failed),
		Pending: uint32(a.Pending), Claimed: uint32(a.Claimed), OldestPendingAgeMS: a.OldestPendingAgeMS, Known: known,
		Waited: quantiles(&s.last, &a, fsm.Waited), Ran: quantiles(&s.last, &a, fsm.Ran),
	}
	s.last = a
}

// quantiles returns the quantiles of the values counted between before and now.
func quantiles(before, now *fsm.Activity, span fsm.Span) percentiles {
	counted := now.Latencies[span].Since(&before.Latencies[span])
	return percentiles{P50: counted.Quantile(500), P99: counted.Quantile(990)}
}

// grown returns how much a counter grew; a smaller value means that it restarted from 0.
func grown(before, now uint64) uint32 {
	if now < before {
		before = 0
	}
	return uint32(now - before)
}

// historyView is a part of a history.
type historyView struct {
	Since  time.Time      // when recording began; zero: it has not
	From   time.Time      // the beginning of the first point; zero: there are no points
	Kept   bool           // false: there are no points of this type
	Points []historyPoint // oldest first
}

// View returns the last points of the type, or of all tasks if it is "".
func (h *history) View(taskType string, points int) historyView {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.total
	if taskType != "" {
		s = h.byType[taskType]
	}
	v := historyView{Since: h.since, Kept: s != nil || taskType == ""}
	count := min(int64(points), int64(historyPoints), h.newest)
	if s == nil || count == 0 {
		return v
	}
	first := h.newest - count + 1
	v.From = h.since.Add(time.Duration(first-1) * historyInterval)
	for n := first; n <= h.newest; n++ {
		v.Points = append(v.Points, s.points[n%int64(historyPoints)])
	}
	return v
}
