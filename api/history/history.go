package history

import (
	"context"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/latency"
)

const (
	// Interval is the time between two points.
	Interval = 10 * time.Second
	// Points is the number of points kept: 6 h.
	Points = int(6 * time.Hour / Interval)
	// TypesMax bounds the types that have their own points.
	TypesMax = fsm.FollowedMax
	// seriesBytes is the approximate memory for the points of a type.
	seriesBytes = Points * 40
	// readMax limits how long a point may wait for the state.
	readMax = Interval / 2
)

// Source is the part of package api's Node that is needed here.
type Source interface {
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)
	Ready() error
}

// Point covers one interval: tasks submitted and ended in it, how long the tasks claimed or completed in it took, and
// the numbers at its end.
type Point struct {
	Submitted, Completed, Failed uint32
	Pending, Claimed             uint32
	Waited, Ran                  Quantiles
	Known                        bool // false: the node did not read its state at the beginning or the end of the interval
	OldestPendingAgeMS           int64
}

// Quantiles are the median and the 99th percentile; empty if there were no values.
type Quantiles struct{ P50, P99 latency.Bucket }

// series holds the points of a type, or of all tasks.
type series struct {
	points []Point // that of interval n is at n % Points
	last   fsm.Activity
	seen   int64 // the last interval at whose end the type existed
}

// History holds the points of a node. Its methods are safe for concurrent use.
type History struct {
	node  Source
	types int // limit of types with points

	mu    sync.Mutex // guards what follows
	since time.Time  // the beginning of the first interval; zero: recording has not begun
	// newest is the last interval that has ended; the first one is 1.
	newest int64
	looked int64 // the last one at whose end the state was read
	total  *series
	byType map[string]*series
	full   bool // when the state was last read, there were types without points
}

// New returns an empty history of the node, which takes about this many bytes.
func New(node Source, bytes int64) *History {
	return &History{node: node, types: int(min(max(bytes/int64(seriesBytes)-1, 0), TypesMax)), byType: make(map[string]*series)}
}

// Run records points until ctx ends. It begins once the node is ready, because what the node applies before that
// happened earlier.
func (h *History) Run(ctx context.Context) {
	ticker := time.NewTicker(Interval)
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
func (h *History) look(ctx context.Context) {
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
		h.since, h.total = now, newSeries()
	}
	end := int64(now.Sub(h.since).Round(Interval) / Interval)
	h.advance(end)
	follows := begun && h.looked == end-1
	h.total.add(end, all, follows)
	for _, t := range types {
		s := h.byType[t.name]
		known := follows
		if s == nil {
			s = newSeries()
			h.byType[t.name] = s
			known = follows && !h.full // otherwise the type existed before
		}
		if t.there {
			s.seen = end
			there--
		}
		if end-s.seen >= int64(Points) {
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
func (h *History) typesOf(m *fsm.Machine, now fsm.Stamp) []typeActivity {
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

func newSeries() *series { return &series{points: make([]Point, Points)} }

// advance makes room for the intervals up to end.
func (h *History) advance(end int64) {
	for n := max(h.newest+1, end-int64(Points)+1); n <= end; n++ {
		h.total.points[n%int64(Points)] = Point{}
		for _, s := range h.byType {
			s.points[n%int64(Points)] = Point{}
		}
	}
	h.newest = end
}

// add makes the point of interval n. known says whether the previous add was at its beginning.
func (s *series) add(n int64, a fsm.Activity, known bool) {
	s.points[n%int64(Points)] = Point{
		Submitted: grown(s.last.Submitted, a.Submitted), Completed: grown(s.last.Completed, a.Completed), Failed: grown(s.last.Failed, a.Failed),
		Pending: uint32(a.Pending), Claimed: uint32(a.Claimed), OldestPendingAgeMS: a.OldestPendingAgeMS, Known: known,
		Waited: quantiles(&s.last, &a, fsm.Waited), Ran: quantiles(&s.last, &a, fsm.Ran),
	}
	s.last = a
}

// quantiles returns the quantiles of the values counted between before and now.
func quantiles(before, now *fsm.Activity, span fsm.Span) Quantiles {
	counted := now.Latencies[span].Since(&before.Latencies[span])
	return Quantiles{P50: counted.Quantile(500), P99: counted.Quantile(990)}
}

// grown returns how much a counter grew; a smaller value means that it restarted from 0.
func grown(before, now uint64) uint32 {
	if now < before {
		before = 0
	}
	return uint32(now - before)
}

// View is a part of a history.
type View struct {
	Since  time.Time // when recording began; zero: it has not
	From   time.Time // the beginning of the first point; zero: there are no points
	Kept   bool      // false: there are no points of this type
	Points []Point   // oldest first
}

// View returns the last points of the type, or of all tasks if it is "".
func (h *History) View(taskType string, points int) View {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.total
	if taskType != "" {
		s = h.byType[taskType]
	}
	v := View{Since: h.since, Kept: s != nil || taskType == ""}
	count := min(int64(points), int64(Points), h.newest)
	if s == nil || count == 0 {
		return v
	}
	first := h.newest - count + 1
	v.From = h.since.Add(time.Duration(first-1) * Interval)
	for n := first; n <= h.newest; n++ {
		v.Points = append(v.Points, s.points[n%int64(Points)])
	}
	return v
}
