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
	// Points is how many are kept: 6 h.
	Points = int(6 * time.Hour / Interval)
	// TypesMax is how many types have points of their own at most.
	TypesMax = fsm.FollowedMax
	// seriesBytes is about what the points of a type take.
	seriesBytes = Points * 40
	// readMax is how long a point may wait for the state.
	readMax = Interval / 2
)

// Source is the node that is looked at; package api's Node has these.
type Source interface {
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)
	Ready() error
}

// Point is an interval: how many tasks were submitted and ended in it, how long those took that
// were claimed or completed in it, and what there was at its end.
type Point struct {
	Submitted, Completed, Failed uint32
	Pending, Claimed             uint32
	Waited, Ran                  Quantiles
	Known                        bool // false: the node did not look at its end, or not at its beginning
	OldestPendingAgeMS           int64
}

// Quantiles are the times that a half, and 99 of 100, did not exceed; none if there were none.
type Quantiles struct{ P50, P99 latency.Bucket }

// series is the points of a type, or of all tasks.
type series struct {
	points []Point // the one of interval n is at n % Points
	last   fsm.Activity
	seen   int64 // the last interval at whose end there was such a type
}

// History is the points of a node. Its methods are safe for concurrent use.
type History struct {
	node  Source
	types int // that may have points

	mu    sync.Mutex // guards what follows
	since time.Time  // the beginning of the first interval; zero: it has not begun
	// newest is the last interval that has ended; the first one is 1.
	newest int64
	looked int64 // the last one at whose end the node looked
	total  *series
	byType map[string]*series
	full   bool // when it looked, there were types without points
}

// New returns an empty history of the node, which takes about so many bytes.
func New(node Source, bytes int64) *History {
	return &History{node: node, types: int(min(max(bytes/int64(seriesBytes)-1, 0), TypesMax)), byType: make(map[string]*series)}
}

// Run makes the points until ctx ends. It begins once the node is ready: what it applies
// before, it has applied earlier, or others have.
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
		return // a gap tells of it
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
			known = follows && !h.full // else it was there before
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

// typeActivity is the activity of a type, the zero value if it is not there.
type typeActivity struct {
	name  string
	there bool
	fsm.Activity
}

// typesOf returns the activity of each type that has points, and of those that get some: as
// many of the types whose latencies are counted as there is room for. Run alone calls it, and
// adds types.
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

// add makes the point of interval n. known says whether the last add was at its beginning.
func (s *series) add(n int64, a fsm.Activity, known bool) {
	s.points[n%int64(Points)] = Point{
		Submitted: grown(s.last.Submitted, a.Submitted), Completed: grown(s.last.Completed, a.Completed), Failed: grown(s.last.Failed, a.Failed),
		Pending: uint32(a.Pending), Claimed: uint32(a.Claimed), OldestPendingAgeMS: a.OldestPendingAgeMS, Known: known,
		Waited: quantiles(&s.last, &a, fsm.Waited), Ran: quantiles(&s.last, &a, fsm.Ran),
	}
	s.last = a
}

// quantiles returns those of what was counted between before and now.
func quantiles(before, now *fsm.Activity, span fsm.Span) Quantiles {
	counted := now.Latencies[span].Since(&before.Latencies[span])
	return Quantiles{P50: counted.Quantile(500), P99: counted.Quantile(990)}
}

// grown returns by how much a counter grew; one that is smaller has started from 0.
func grown(before, now uint64) uint32 {
	if now < before {
		before = 0
	}
	return uint32(now - before)
}

// View is a part of a history.
type View struct {
	Since  time.Time // when the node began to look; zero: it has not
	From   time.Time // the beginning of the first point; zero: there is none
	Kept   bool      // false: there are no points of this type
	Points []Point   // the oldest first
}

// View returns the last points of the type, of all tasks if it is "".
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
