package check

import (
	"fmt"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// How soon after a fault is over the cluster must be itself again.
const (
	leaderMax   = 5 * time.Second
	progressMax = 10 * time.Second
	levelMax    = 30 * time.Second
)

// recovery checks that after each fault there was a leader, progress, and that
// all nodes drew level, in time. A fault that began meanwhile excuses.
func recovery(h *history.History) Part {
	p := Part{Name: "recovery"}
	if h.Run.Failed != "" {
		p.Violate(RuleRecovery, 0, nil, "the run could not be finished: %s", h.Run.Failed)
	}
	var worst struct{ leader, progress, level time.Duration }
	healed := 0
	for i := range h.Events {
		e := &h.Events[i]
		if e.Kind != history.Healed || active(h, e.At) {
			continue
		}
		healed++
		next := nextFault(h, e.At)
		for _, what := range []struct {
			name  string
			after func(h *history.History, at, until int64) (time.Duration, bool)
			most  time.Duration
			worst *time.Duration
		}{
			{"leader", leaderAfter, leaderMax, &worst.leader},
			{"progress", progressAfter, progressMax, &worst.progress},
			{"level followers", levelAfter, levelMax, &worst.level},
		} {
			switch took, ok := what.after(h, e.At, next); {
			case ok && took > what.most:
				p.Violate(RuleRecovery, 0, nil, "%s (%s): %s after %v, %v are allowed", e.Text, clock(e.At), what.name, took.Round(time.Millisecond), what.most)
				fallthrough
			case ok:
				*what.worst = max(*what.worst, took)
			case next >= e.At+int64(what.most):
				p.Violate(RuleRecovery, 0, nil, "%s (%s): no %s in %v", e.Text, clock(e.At), what.name, what.most)
			}
		}
	}
	p.Summary = fmt.Sprintf("%d times: a leader after at most %v, progress %v, all nodes level %v", healed,
		worst.leader.Round(10*time.Millisecond), worst.progress.Round(10*time.Millisecond), worst.level.Round(10*time.Millisecond))
	return p
}

// active reports whether a fault was under way just after at.
func active(h *history.History, at int64) bool {
	count := 0
	for i := range h.Events {
		if e := &h.Events[i]; e.At <= at {
			count += map[history.EventKind]int{history.Injected: 1, history.Healed: -1}[e.Kind]
		}
	}
	return count > 0
}

// nextFault returns when the next fault began, or when the load ended: from
// then on nothing is asked of the cluster.
func nextFault(h *history.History, at int64) int64 {
	for i := range h.Events {
		if e := &h.Events[i]; e.At > at && e.Kind == history.Injected {
			return e.At
		}
	}
	return int64(lastReturn(h)) + int64(levelMax)
}

func leaderAfter(h *history.History, at, until int64) (time.Duration, bool) {
	for i := range h.Samples {
		if s := &h.Samples[i]; s.At >= at && s.At < until && s.Leads {
			return time.Duration(s.At - at), true
		}
	}
	return 0, false
}

func progressAfter(h *history.History, at, until int64) (time.Duration, bool) {
	first := until
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Call >= at && op.Return < first && op.Changes() {
			first = op.Return
		}
	}
	return time.Duration(first - at), first < until
}

// levelAfter returns when every node had reached what was the highest index at
// the time.
func levelAfter(h *history.History, at, until int64) (time.Duration, bool) {
	highest := uint64(0)
	nodes := map[string]bool{} // those not yet level
	for i := range h.Samples {
		s := &h.Samples[i]
		nodes[s.Node] = true
		if s.At <= at {
			highest = max(highest, s.Index)
		}
	}
	for i := range h.Samples {
		s := &h.Samples[i]
		if s.At < at || s.At >= until || !s.Up || s.Index < highest {
			continue
		}
		if delete(nodes, s.Node); len(nodes) == 0 {
			return time.Duration(s.At - at), true
		}
	}
	return 0, false
}
