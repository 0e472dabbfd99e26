package top

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

// noon is the time of the first look in the tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// lookAt returns a look at three nodes with that leader, some time after noon.
func lookAt(after time.Duration, leader string, options ...func(*Look)) Look {
	at := noon.Add(after)
	c := &wire.Cluster{Leader: leader, Term: 7, FeatureLevel: 5}
	for _, id := range []string{"n1", "n2", "n3"} {
		state := "follower"
		if id == leader {
			state = "leader"
		}
		c.Nodes = append(c.Nodes, wire.Node{NodeID: id, State: state, Suffrage: "voter", AppliedIndex: 100, Version: "v1.2.3", Healthy: true, LastContactMS: 30})
	}
	l := Look{At: at, Cluster: c, NoLeader: leader == "", Metrics: map[string]Metrics{}}
	for _, option := range options {
		option(&l)
	}
	return l
}

// counted gives the look the metrics of a node whose process started at started. All its counters have the same
// value.
func counted(id string, leads bool, started, count float64) func(*Look) {
	return func(l *Look) {
		l.Metrics[id] = Metrics{
			At: l.At, NodeID: id, Leads: leads, Started: started, Tasks: map[string]int64{"pending": int64(count)},
			Counters: Counters{Submitted: count, Claimed: count, Completed: count, Failed: count, Expired: count},
		}
	}
}

// perSecond returns the rate of submitted tasks, or -1 if there is none.
func perSecond(v *View) float64 {
	if v.Rates == nil {
		return -1
	}
	return v.Rates.Submitted
}

func TestModel_rates(t *testing.T) {
	t.Parallel()
	none := func(*Look) {}
	type step struct {
		after  time.Duration
		leader string
		option func(*Look)
		want   float64
	}
	for name, steps := range map[string][]step{
		"between two looks": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "n1", counted("n1", true, 1, 1010), 10},
			{3 * time.Second, "n1", counted("n1", true, 1, 1110), 50},
			{4 * time.Second, "n1", counted("n1", true, 1, 1110), 0},
		},
		"another leader has counters of its own": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "n1", counted("n1", true, 1, 1010), 10},
			{2 * time.Second, "n2", counted("n2", true, 1, 70_000), -1},
			{3 * time.Second, "n2", counted("n2", true, 1, 70_020), 20},
			{4 * time.Second, "n1", counted("n1", true, 1, 9000), -1},
		},
		"no leader between, and the same again": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "", none, -1},
			{2 * time.Second, "n1", counted("n1", true, 1, 5000), -1},
			{3 * time.Second, "n1", counted("n1", true, 1, 5005), 5},
		},
		"a process that was restarted begins again": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "n1", counted("n1", true, 2, 3), -1},
			{2 * time.Second, "n1", counted("n1", true, 2, 7), 4},
			{3 * time.Second, "n1", counted("n1", true, 3, 9000), -1},
		},
		"a counter that has shrunk": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "n1", counted("n1", true, 1, 900), -1},
			{2 * time.Second, "n1", counted("n1", true, 1, 902), 2},
		},
		"a node that does not serve as the leader yet": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "n2", counted("n2", false, 1, 10), -1},
			{2 * time.Second, "n2", counted("n2", true, 1, 500), -1},
			{3 * time.Second, "n2", counted("n2", true, 1, 501), 1},
		},
		"metrics that are not asked for at each look": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Second, "n1", counted("n1", true, 1, 1010), 10},
			{2 * time.Second, "n1", none, 10},
			{3 * time.Second, "n1", counted("n1", true, 1, 1050), 20},
			{20 * time.Second, "n1", none, -1},
		},
		"two looks that lie too far apart": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{time.Hour, "n1", counted("n1", true, 1, 1010), -1},
		},
		"the same moment twice": {
			{0, "n1", counted("n1", true, 1, 1000), -1},
			{0, "n1", counted("n1", true, 1, 1010), -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m Model
			for i, s := range steps {
				if got := perSecond(m.Add(lookAt(s.after, s.leader, s.option))); got != s.want {
					t.Errorf("look %d: %v a second, want %v", i, got, s.want)
				}
			}
		})
	}
}

// The time without a leader counts from the first look without one, even if no node answers in later looks.
func TestModel_noLeader(t *testing.T) {
	t.Parallel()
	var m Model
	m.Add(lookAt(0, "n1"))
	silent := Look{At: noon.Add(3 * time.Second), Err: errors.New("refused")}
	for i, step := range []struct {
		look   Look
		want   int64 // in ms
		silent bool
	}{
		{lookAt(time.Second, ""), 1, false},
		{lookAt(2500*time.Millisecond, ""), 1500, false},
		{silent, 1500, true},
		{lookAt(4*time.Second, "", func(l *Look) { l.Cluster.Leader = "n1"; l.NoLeader = true }), 3000, false}, // named by a node that cannot reach it
		{lookAt(5*time.Second, "n2"), 0, false},
		{lookAt(6*time.Second, ""), 1, false},
	} {
		v := m.Add(step.look)
		got := v.NoLeaderMS
		if step.silent {
			got = step.want // a look without an answer leaves it out
		}
		if got != step.want || !v.silentSince.IsZero() != step.silent {
			t.Errorf("look %d: no leader for %d ms, want %d; silent %v", i, got, step.want, !v.silentSince.IsZero())
		}
		if step.want > 0 && !step.silent && v.Leader != "" {
			t.Errorf("look %d: %s leads", i, v.Leader)
		}
		if v.noLeaderSince.IsZero() != (step.want == 0) {
			t.Errorf("look %d: without a leader since %v", i, v.noLeaderSince)
		}
	}
}

// If no node answers, the view keeps the last state of the nodes.
func TestModel_silence(t *testing.T) {
	t.Parallel()
	var m Model
	before := m.Add(lookAt(0, "n1", counted("n1", true, 1, 5)))
	v := m.Add(Look{At: noon.Add(time.Second), Err: errors.New("refused"), Problems: []string{"the cluster: refused"}})
	if diff := cmp.Diff(before.Nodes, v.Nodes); diff != "" {
		t.Errorf("-before +after\n%s", diff)
	}
	if v.Leader != "n1" || v.Counts["pending"] != 5 || v.Rates != nil {
		t.Errorf("got %+v", v)
	}
}

func TestModel_cluster(t *testing.T) {
	t.Parallel()
	var m Model
	m.Add(lookAt(0, "n1", counted("n2", false, 1, 5), func(l *Look) {
		n2 := l.Metrics["n2"]
		n2.ProcessMemoryBytes, n2.DiskFreeBytes, n2.DiskSizeBytes = 1000, 2000, -1
		l.Metrics["n2"] = n2
	}))
	v := m.Add(lookAt(time.Second, "n1", func(l *Look) {
		l.Cluster.Nodes[1].AppliedIndex = 93
		l.Cluster.Nodes[2].State = "unknown"
	}))
	if v.NodesUp != 2 {
		t.Errorf("%d nodes up", v.NodesUp)
	}
	if n2 := v.Nodes[1]; *n2.LagEntries != 7 || *n2.MemoryBytes != 1000 || *n2.DiskFreeBytes != 2000 || n2.DiskSizeBytes != nil {
		t.Errorf("n2 is %+v", n2)
	}
	if n3 := v.Nodes[2]; n3.Up || n3.LagEntries != nil {
		t.Errorf("n3 is %+v", n3)
	}
	if v := m.Add(lookAt(2*time.Second, "n1", func(l *Look) { l.Cluster.Nodes = l.Cluster.Nodes[:1] })); len(m.scraped) != 0 || len(v.Nodes) != 1 {
		t.Errorf("it keeps the metrics of nodes that left: %v", m.scraped)
	}
}

// A key that may not see the cluster sees the types and their sum.
func TestModel_typesAlone(t *testing.T) {
	t.Parallel()
	m := Model{Filter: []string{"mail", "img-*"}}
	var rows []wire.Type
	for _, name := range []string{"img", "img-a", "img-b", "mail", "mail2"} {
		rows = append(rows, wire.Type{TaskType: name, TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": 2, "failed": 1}, OldestPendingAgeMS: 40}})
	}
	v := m.Add(Look{At: noon, Types: &Types{At: noon, Rows: rows}})
	var names []string
	for _, row := range v.Types {
		names = append(names, row.TaskType)
	}
	if diff := cmp.Diff([]string{"img-a", "img-b", "mail"}, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if v.Counts["pending"] != 10 || v.Counts["failed"] != 5 || *v.OldestPendingMS != 40 || v.Rates != nil || v.NoLeaderMS != 0 {
		t.Errorf("got %+v", v)
	}
}
