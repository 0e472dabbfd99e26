package top

import (
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Model turns looks into views. One goroutine may use it.
type Model struct {
	// Filter lists the types to show. One that ends in * matches all types with that prefix. Empty means all.
	Filter []string

	leader  string  // the leader that before belongs to
	before  Metrics // its metrics at the last look that had them
	rates   *Rates
	scraped map[string]Metrics // the last metrics of every node

	noLeaderSince time.Time
	silentSince   time.Time
	view          *View // the last one
}

// Add takes the next look and returns the view to show. The view never changes afterwards.
func (m *Model) Add(l Look) *View {
	m.note(&l)
	v := &View{
		At: l.At, Counts: map[string]int64{}, Rates: m.rates, Problems: l.Problems, noLeaderSince: m.noLeaderSince, silentSince: m.silentSince,
		Nodes: []NodeRow{}, Types: []TypeRow{}, Workers: []WorkerRow{},
	}
	if v.Problems == nil {
		v.Problems = []string{}
	}
	m.addTypes(v, &l)
	addWorkers(v, &l)
	switch {
	case l.Cluster != nil:
		m.addCluster(v, &l)
	case m.view != nil: // keep the last state
		v.Leader, v.Term, v.FeatureLevel, v.Nodes, v.NodesUp = m.view.Leader, m.view.Term, m.view.FeatureLevel, m.view.Nodes, m.view.NodesUp
	}
	if l.NoLeader {
		v.Leader = ""
		v.NoLeaderMS = max(l.At.Sub(m.noLeaderSince).Milliseconds(), 1)
	}
	m.addTotals(v, &l)
	m.view = v
	return v
}

// note stores what the next look is compared with.
func (m *Model) note(l *Look) {
	switch {
	case !l.NoLeader && l.Err == nil:
		m.noLeaderSince = time.Time{}
	case l.NoLeader && m.noLeaderSince.IsZero():
		m.noLeaderSince = l.At
	}
	switch {
	case l.Err == nil:
		m.silentSince = time.Time{}
	case m.silentSince.IsZero():
		m.silentSince = l.At
	}
	if m.scraped == nil {
		m.scraped = map[string]Metrics{}
	}
	if l.Cluster != nil { // forget nodes that have left
		for id := range m.scraped {
			if !slices.ContainsFunc(l.Cluster.Nodes, func(n wire.Node) bool { return n.NodeID == id }) {
				delete(m.scraped, id)
			}
		}
	}
	for id, metrics := range l.Metrics {
		m.scraped[id] = metrics
	}
	m.rate(l)
}

// rateGapMax is the longest time between two looks for a useful rate.
const rateGapMax = 2 * time.Minute

// rate computes the rates between the last two looks at the same leader. The leader counts for the whole cluster,
// from the start of its process. So counters of another leader or another process must not be compared with them.
func (m *Model) rate(l *Look) {
	if l.NoLeader || l.Cluster == nil || l.Err != nil {
		m.leader, m.rates = "", nil
		return
	}
	leader := l.Cluster.Leader
	next, ok := l.Metrics[leader]
	switch {
	case leader != m.leader || ok && !next.Leads:
		m.leader, m.rates = "", nil
		if ok && next.Leads {
			m.leader, m.before = leader, next
		}
		return
	case !ok: // not asked or not answered: the old rates are a few seconds old
		if l.At.Sub(m.before.At) > putOff {
			m.rates = nil
		}
		return
	}
	m.rates = ratesBetween(&m.before, &next)
	m.before = next
}

// ratesBetween returns nil if the two cannot be compared.
func ratesBetween(before, next *Metrics) *Rates {
	elapsed := next.At.Sub(before.At)
	if elapsed <= 0 || elapsed > rateGapMax || before.Started != next.Started {
		return nil
	}
	a, b := &before.Counters, &next.Counters
	if b.Submitted < a.Submitted || b.Claimed < a.Claimed || b.Completed < a.Completed || b.Failed < a.Failed || b.Expired < a.Expired {
		return nil
	}
	s := elapsed.Seconds()
	return &Rates{
		Submitted: (b.Submitted - a.Submitted) / s, Claimed: (b.Claimed - a.Claimed) / s, Completed: (b.Completed - a.Completed) / s,
		Failed: (b.Failed - a.Failed) / s, Expired: (b.Expired - a.Expired) / s,
	}
}

// addTotals adds the totals. They come from the leader's metrics. If the cluster was never seen with a leader, they
// come from the node that answers, or else from the sum of the types.
func (m *Model) addTotals(v *View, l *Look) {
	if m.view != nil && (l.NoLeader || l.Err != nil) { // keep the last state
		v.Counts, v.OldestPendingMS, v.StateBytes, v.StateLimitBytes = m.view.Counts, m.view.OldestPendingMS, m.view.StateBytes, m.view.StateLimitBytes
		return
	}
	metrics, ok := m.totals(v, l)
	if ok {
		v.StateBytes, v.StateLimitBytes, v.OldestPendingMS = known(metrics.StateBytes), known(metrics.StateLimitBytes), known(metrics.OldestPendingMS)
	}
	if ok && metrics.Tasks != nil {
		v.Counts = metrics.Tasks
		return
	}
	if l.Types == nil {
		return
	}
	oldest := int64(0)
	for i := range l.Types.Rows {
		for status, n := range l.Types.Rows[i].Counts {
			v.Counts[status] += n
		}
		oldest = max(oldest, l.Types.Rows[i].OldestPendingAgeMS)
	}
	v.OldestPendingMS = &oldest
}

// totals returns the metrics that describe the whole state.
func (m *Model) totals(v *View, l *Look) (Metrics, bool) {
	if v.Leader != "" {
		metrics, ok := m.scraped[v.Leader]
		return metrics, ok && l.At.Sub(metrics.At) < putOff
	}
	for _, metrics := range l.Metrics {
		return metrics, true // there is only one
	}
	return Metrics{}, false
}

// known returns n, or nil if it is below 0.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// addCluster adds the nodes in the server's order.
func (m *Model) addCluster(v *View, l *Look) {
	c := l.Cluster
	v.Leader, v.Term, v.FeatureLevel = c.Leader, c.Term, c.FeatureLevel
	var applied uint64
	for i := range c.Nodes {
		if c.Nodes[i].NodeID == c.Leader {
			applied = c.Nodes[i].AppliedIndex
		}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		row := NodeRow{
			NodeID: n.NodeID, State: n.State, Suffrage: n.Suffrage, Up: n.State != "unknown", AppliedIndex: n.AppliedIndex, LastContactMS: n.LastContactMS,
			Version: n.Version, Healthy: n.Healthy, Problem: n.Problem,
		}
		if row.Up {
			v.NodesUp++
			if !l.NoLeader {
				lag := max(int64(applied)-int64(n.AppliedIndex), 0)
				row.LagEntries = &lag
			}
			if scraped, ok := m.scraped[n.NodeID]; ok {
				row.MemoryBytes, row.DiskFreeBytes, row.DiskSizeBytes = known(scraped.ProcessMemoryBytes), known(scraped.DiskFreeBytes), known(scraped.DiskSizeBytes)
			}
		}
		v.Nodes = append(v.Nodes, row)
	}
}

// addTypes adds the types that pass the filter.
func (m *Model) addTypes(v *View, l *Look) {
	if l.Types == nil {
		return
	}
	v.typesAt = l.Types.At
	for i := range l.Types.Rows {
		t := &l.Types.Rows[i]
		if !m.shows(t.TaskType) {
			continue
		}
		v.Types = append(v.Types, TypeRow{
			TaskType: t.TaskType, Counts: t.Counts, OldestPendingMS: t.OldestPendingAgeMS, SubmittedPerS: t.SubmittedPerS, CompletedPerS: t.CompletedPerS,
			FailedPerS: t.FailedPerS, Paused: t.Paused, MaxClaimed: t.MaxClaimed, RateLimit: t.RateLimit,
		})
	}
}

// shows reports whether the type passes the filter.
func (m *Model) shows(taskType string) bool {
	return len(m.Filter) == 0 || slices.ContainsFunc(m.Filter, func(f string) bool {
		prefix, open := strings.CutSuffix(f, "*")
		return f == taskType || open && strings.HasPrefix(taskType, prefix)
	})
}

func addWorkers(v *View, l *Look) {
	if l.Workers == nil {
		return
	}
	v.workersAt = l.Workers.At
	for i := range l.Workers.Rows {
		w := &l.Workers.Rows[i]
		row := WorkerRow{WorkerID: w.WorkerID, Claimed: w.Claimed, TaskIDs: w.TaskIDs[:min(len(w.TaskIDs), taskIDsMax)]}
		if row.TaskIDs == nil {
			row.TaskIDs = []uint64{}
		}
		if w.LastSeenAt != nil {
			row.LastSeenMS = known(max(l.Workers.At.Sub(*w.LastSeenAt).Milliseconds(), 0))
		}
		v.Workers = append(v.Workers, row)
	}
}
