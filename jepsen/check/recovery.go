package check

import (
	"fmt"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Bounds on the time in which the cluster recovers after a fault.
const (
	leaderMax   = 5 * time.Second
	progressMax = 10 * time.Second
	levelMax    = 30 * time.Second
	sharedTimes = 3 // times as long on a machine that does other work
)

// recovery checks that after each fault, in time, there was a leader, a change was acknowledged,
// and all nodes caught up. A fault that began in the meantime is an excuse.
func recovery(h *history.History) Part {
	p := Part{Name: "recovery"}
	if h.Run.Failed != "" {
		p.Violate(RuleRecovery, 0, nil, "the run could not be finished: %s", h.Run.Failed)
	}
	worst := map[string]time.Duration{}
	healed := 0
	for i := range h.Events {
		e := &h.Events[i]
		if e.Kind != history.Healed || active(h, e.At) {
			continue
		}
		healed++
		next := nextFault(h, e.At)
		for _, what := range []struct {
			name string
			at   int64 // next if it was not before
			most time.Duration
		}{
			{"leader", leaderAt(h, e.At, next), leaderMax},
			{"progress", progressAt(h, e.At, next), progressMax},
			{"level followers", levelAt(h, e.At, next), levelMax},
		} {
			took, most := time.Duration(what.at-e.At), what.most
			if h.Run.Shared {
				most *= sharedTimes
			}
			if took > most {
				p.Violate(RuleRecovery, 0, nil, "%s (%s): %s after %v or more, %v are allowed", e.Text, clock(e.At), what.name, took.Round(time.Millisecond), most)
			}
			if what.at < next {
				worst[what.name] = max(worst[what.name], took.Round(10*time.Millisecond))
			}
		}
	}
	p.Summary = fmt.Sprintf("%d times: a leader after at most %v, progress %v, all nodes level %v", healed, worst["leader"], worst["progress"], worst["level followers"])
	return p
}

// active reports whether a fault was active just after at.
func active(h *history.History, at int64) bool {
	count := 0
	for i := range h.Events {
		if e := &h.Events[i]; e.At <= at {
			count += map[history.EventKind]int{history.Injected: 1, history.Healed: -1}[e.Kind]
		}
	}
	return count > 0
}

// nextFault returns the start of the next fault or the end of the load. From then on nothing is
// required of the cluster.
func nextFault(h *history.History, at int64) int64 {
	for i := range h.Events {
		if e := &h.Events[i]; e.At > at && e.Kind == history.Injected {
			return e.At
		}
	}
	return int64(lastReturn(h)) + int64(levelMax)
}

// leaderAt returns the first time from at on with a leader, or until if there was no leader before it.
func leaderAt(h *history.History, at, until int64) int64 {
	for i := range h.Samples {
		if s := &h.Samples[i]; s.At >= at && s.Leads {
			return min(s.At, until)
		}
	}
	return until
}

// progressAt returns when the first change that was sent after at was acknowledged.
func progressAt(h *history.History, at, until int64) int64 {
	first := until
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Call >= at && op.Changes() {
			first = min(first, op.Return)
		}
	}
	return first
}

// levelAt returns when every node had reached the index that was the highest one at at.
func levelAt(h *history.History, at, until int64) int64 {
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
		if s.At < at || !s.Up || s.Index < highest {
			continue
		}
		if delete(nodes, s.Node); len(nodes) == 0 {
			return min(s.At, until)
		}
	}
	return until
}
