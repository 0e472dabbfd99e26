package meter

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

const (
	// typeLabelsMax bounds the task types with their own metrics. Types with settings come first, by name, so that
	// they keep them after a restart; then the first ones seen. Others count as otherType.
	typeLabelsMax = 100
	otherType     = "other"
)

// Metrics of the state, read on each scrape. Every node reports its own state.
var (
	tasksDesc = prometheus.NewDesc("claimq_tasks", "Tasks that this node holds, by status.", []string{"status"}, nil)
	typesDesc = prometheus.NewDesc("claimq_tasks_by_type",
		"Tasks that this node holds, by type and status; types past 100 count as other, those with settings last.", []string{"task_type", "status"}, nil)
	waitDesc = prometheus.NewDesc("claimq_type_oldest_wait_seconds",
		"How long the type's oldest pending task has waited, since its submit or its run_at; 0 if none is pending.", []string{"task_type"}, nil)
	rateDesc = prometheus.NewDesc("claimq_type_per_second",
		"Tasks of the type submitted, completed and failed for good, per second over the last minute.", []string{"task_type", "event"}, nil)
	pausedDesc = prometheus.NewDesc("claimq_type_paused", "1 if the type is paused, else 0.", []string{"task_type"}, nil)
	sharesDesc = prometheus.NewDesc("claimq_type_shares",
		"Share keys of the type's tasks that wait, by whether they can be claimed; of types with share keys.", []string{"task_type", "state"}, nil)
	shareWaitDesc = prometheus.NewDesc("claimq_type_share_oldest_wait_seconds",
		"How long the oldest task of the type has waited whose share key is open; of types with share keys.", []string{"task_type"}, nil)
	bytesDesc = prometheus.NewDesc("claimq_state_bytes", "Estimated memory of the state.", nil, nil)
	endedDesc = prometheus.NewDesc("claimq_ended_bytes",
		"Estimated memory of the tasks that have ended; past a quarter of the state's limit the oldest are evicted.", nil, nil)
	rememberedDesc = prometheus.NewDesc("claimq_remembered_bytes",
		"Estimated memory of what is remembered of removed tasks and of claim requests; past a quarter of the state's limit the oldest is forgotten.", nil, nil)
	oldestDesc     = prometheus.NewDesc("claimq_oldest_pending_age_seconds", "Age of the oldest pending task, 0 if there is none.", nil, nil)
	trailDesc      = prometheus.NewDesc("claimq_trail_bytes", "Bytes of events in the trail.", nil, nil)
	trailLimitDesc = prometheus.NewDesc("claimq_trail_limit_bytes", "Bytes of events past which the oldest leave the trail.", nil, nil)
	trailAgeDesc   = prometheus.NewDesc("claimq_trail_oldest_age_seconds", "Age of the oldest event in the trail, 0 if there is none.", nil, nil)
	schedulesDesc  = prometheus.NewDesc("claimq_schedules", "Schedules, paused ones too.", nil, nil)
	lateDesc       = prometheus.NewDesc("claimq_schedule_late_seconds", "How long the earliest slot of a schedule is overdue, 0 if none is.", nil, nil)
)

// stateCollector collects the metrics of this node's state.
type stateCollector struct {
	of     *Sources
	mu     sync.Mutex
	labels []string // labelled types without settings, in the order in which they were seen; guarded by mu
}

func newStateCollector(of *Sources) *stateCollector {
	return &stateCollector{of: of}
}

// typesPage is the number of types read under one lock; each takes about a microsecond.
const typesPage = 200

// stateView is the part of the state that was read: each type as of some moment of the scrape, everything else as of
// its beginning.
type stateView struct {
	counts               [fsm.StatusCancelled + 1]int64 // by Status
	types                []typeView
	oldestMS             int64
	bytes                int64
	ended, remembered    int64 // bytes
	trailBytes, trailAge int64
	trailLimit           int64
	schedules            int
	lateMS               int64
}

// typeView is a type with the sums of its shares.
type typeView struct {
	fsm.TypeView
	shares    fsm.WaitingShares
	hasShares bool
}

// readAll reads the state, and then the types, some at a time.
func (v *stateView) readAll(read func(fn func(m *fsm.Machine, now fsm.Stamp)) error) error {
	err := read(v.read)
	for after, more := "", true; err == nil && more; {
		err = read(func(m *fsm.Machine, now fsm.Stamp) {
			types := m.Types(after, typesPage, now)
			for i := range types {
				shares, ok := m.WaitingShares(types[i].Type, now)
				v.types = append(v.types, typeView{types[i], shares, ok})
			}
			if more = len(types) == typesPage; more {
				after = types[typesPage-1].Type
			}
		})
	}
	for i := range v.types {
		v.oldestMS = max(v.oldestMS, v.types[i].OldestPendingAgeMS)
	}
	return err
}

// read reads everything but the types.
func (v *stateView) read(m *fsm.Machine, now fsm.Stamp) {
	v.counts, v.bytes = m.Counts(), m.Bytes()
	v.ended, v.remembered, v.trailLimit = m.EndedBytes(), m.RememberedBytes(), m.TrailBounds().Bytes
	var oldest int64
	if v.trailBytes, oldest = m.TrailStats(); oldest != 0 {
		v.trailAge = max(now.T-oldest, 0)
	}
	v.schedules = len(m.Schedules())
	if slot, ok := m.NextSlot(); ok {
		v.lateMS = max(now.T-slot, 0)
	}
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		tasksDesc, typesDesc, waitDesc, rateDesc, pausedDesc, sharesDesc, shareWaitDesc, bytesDesc, endedDesc, rememberedDesc, oldestDesc,
		trailDesc, trailLimitDesc, trailAgeDesc, schedulesDesc, lateDesc,
	} {
		ch <- d
	}
}

// gauges emits values of gauges.
type gauges chan<- prometheus.Metric

func (g gauges) set(d *prometheus.Desc, v float64, labels ...string) {
	g <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// Collect implements prometheus.Collector. If the node's state cannot be read, it emits no values.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	var v stateView
	if v.readAll(c.of.Read) != nil {
		return
	}
	g := gauges(ch)
	g.set(bytesDesc, float64(v.bytes))
	g.set(endedDesc, float64(v.ended))
	g.set(rememberedDesc, float64(v.remembered))
	g.set(oldestDesc, float64(v.oldestMS)/1000)
	g.set(trailDesc, float64(v.trailBytes))
	g.set(trailLimitDesc, float64(v.trailLimit))
	g.set(trailAgeDesc, float64(v.trailAge)/1000)
	g.set(schedulesDesc, float64(v.schedules))
	g.set(lateDesc, float64(v.lateMS)/1000)
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		g.set(tasksDesc, float64(v.counts[s]), s.String())
	}
	for _, t := range c.bounded(v.types) {
		g.setType(&t)
	}
}

func (g gauges) setType(t *typeView) {
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		g.set(typesDesc, float64(t.Counts[s]), t.Type, s.String())
	}
	g.set(waitDesc, float64(t.OldestWaitMS)/1000, t.Type)
	g.set(rateDesc, float64(t.SubmittedPerS)/jsonout.Micro, t.Type, "submitted")
	g.set(rateDesc, float64(t.CompletedPerS)/jsonout.Micro, t.Type, "completed")
	g.set(rateDesc, float64(t.FailedPerS)/jsonout.Micro, t.Type, "failed")
	paused := 0.0
	if t.Settings.Paused {
		paused = 1
	}
	g.set(pausedDesc, paused, t.Type)
	if !t.hasShares {
		return
	}
	for s, n := range t.shares.ByState {
		g.set(sharesDesc, float64(n), t.Type, fsm.ShareState(s).String())
	}
	g.set(shareWaitDesc, float64(t.shares.OldestWaitMS)/1000, t.Type)
}

// isIdle reports whether the type has neither tasks nor rates.
func isIdle(t *typeView) bool {
	return t.Counts == (fsm.TypeView{}).Counts && t.SubmittedPerS == 0 && t.CompletedPerS == 0 && t.FailedPerS == 0
}

// bounded returns the types that have a label and are not idle, and all others summed as otherType, which is never
// paused.
func (c *stateCollector) bounded(types []typeView) []typeView {
	c.mu.Lock()
	defer c.mu.Unlock()
	labels := c.labelled(types)
	others := typeView{TypeView: fsm.TypeView{Type: otherType}}
	var out []typeView
	seen := false
	for _, t := range types {
		if isIdle(&t) {
			continue
		}
		if labels[t.Type] {
			out = append(out, t)
			continue
		}
		seen = true
		others.add(&t)
	}
	if seen {
		out = append(out, others)
	}
	return out
}

// add adds another type to the sums.
func (v *typeView) add(t *typeView) {
	for s := range t.Counts {
		v.Counts[s] += t.Counts[s]
	}
	v.SubmittedPerS += t.SubmittedPerS
	v.CompletedPerS += t.CompletedPerS
	v.FailedPerS += t.FailedPerS
	v.hasShares = v.hasShares || t.hasShares
	for s := range t.shares.ByState {
		v.shares.ByState[s] += t.shares.ByState[s]
	}
	if !t.Settings.Paused {
		v.OldestWaitMS = max(v.OldestWaitMS, t.OldestWaitMS)
		v.shares.OldestWaitMS = max(v.shares.OldestWaitMS, t.shares.OldestWaitMS)
	}
}

// labelled returns the types with their own metrics. The caller holds mu.
func (c *stateCollector) labelled(types []typeView) map[string]bool {
	labels := make(map[string]bool, typeLabelsMax)
	for _, t := range types {
		if t.Settings != (fsm.TypeSettings{}) && t.Type != otherType && len(labels) < typeLabelsMax {
			labels[t.Type] = true
		}
	}
	c.labels = slices.DeleteFunc(c.labels, func(name string) bool { return labels[name] })
	c.labels = c.labels[:min(len(c.labels), typeLabelsMax-len(labels))]
	for _, name := range c.labels {
		labels[name] = true
	}
	for _, t := range types {
		if !isIdle(&t) && t.Type != otherType && !labels[t.Type] && len(labels) < typeLabelsMax {
			labels[t.Type] = true
			c.labels = append(c.labels, t.Type)
		}
	}
	return labels
}
