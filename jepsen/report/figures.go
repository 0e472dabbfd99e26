package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// binLength is how much time one column of the charts stands for.
const binLength = 500 * time.Millisecond

// outageMin is how long nothing must have been acknowledged that changes
// anything for it to be called unavailability.
const outageMin = time.Second

// figures are what the charts show.
type figures struct {
	end     time.Duration // of the picture
	bins    []bin
	faults  []span
	nodes   []nodeRow
	outages []span
	changes []change
}

// bin is the calls that returned in one column.
type bin struct {
	ok, failed, unknown int
	took                []time.Duration // sorted; of the answered
}

// span is a part of the run with a name.
type span struct {
	from, to time.Duration
	name     string
}

// nodeRow is one node's states, one after the other.
type nodeRow struct {
	name   string
	states []span // name: leader, up or down
}

// change is a node's beginning to lead.
type change struct {
	at   time.Duration
	node string
	term uint64
}

func figuresOf(h *history.History) figures {
	f := figures{}
	for i := range h.Ops {
		f.end = max(f.end, time.Duration(h.Ops[i].Return))
	}
	for i := range h.Samples {
		f.end = max(f.end, time.Duration(h.Samples[i].At))
	}
	f.end = max(f.end, time.Second)
	f.countCalls(h)
	f.findFaults(h)
	f.findStates(h)
	f.findOutages(h)
	return f
}

func (f *figures) countCalls(h *history.History) {
	f.bins = make([]bin, int(f.end/binLength)+1)
	type key struct {
		process int
		call    int64
	}
	counted := map[key]bool{} // a call of several tasks is several ops
	for i := range h.Ops {
		op := &h.Ops[i]
		k := key{op.Process, op.Call}
		if counted[k] {
			continue
		}
		counted[k] = true
		b := &f.bins[int(time.Duration(op.Return)/binLength)]
		switch op.Outcome {
		case history.OK:
			b.ok++
		case history.Unknown:
			b.unknown++
			continue
		default:
			b.failed++
		}
		b.took = append(b.took, time.Duration(op.Return-op.Call))
	}
	for i := range f.bins {
		slices.Sort(f.bins[i].took)
	}
}

// quantile returns the q-th of the sorted times, 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (f *figures) findFaults(h *history.History) {
	open := map[string]time.Duration{}
	for i := range h.Events {
		switch e := &h.Events[i]; e.Kind {
		case history.Injected:
			open[e.Fault] = time.Duration(e.At)
		case history.Healed:
			if from, ok := open[e.Fault]; ok {
				f.faults = append(f.faults, span{from, time.Duration(e.At), e.Fault})
				delete(open, e.Fault)
			}
		}
	}
	for name, from := range open {
		f.faults = append(f.faults, span{from, f.end, name + " (never healed)"})
	}
	slices.SortFunc(f.faults, func(a, b span) int { return cmp.Compare(a.from, b.from) })
}

func (f *figures) findStates(h *history.History) {
	rows := map[string]*nodeRow{}
	var names []string
	for i := range h.Samples {
		s := &h.Samples[i]
		row := rows[s.Node]
		if row == nil {
			row = &nodeRow{name: s.Node}
			rows[s.Node] = row
			names = append(names, s.Node)
		}
		is := "down"
		switch {
		case s.Leads:
			is = "leader"
		case s.Up:
			is = "up"
		}
		at := time.Duration(s.At)
		n := len(row.states)
		if n > 0 {
			row.states[n-1].to = at
		}
		if n == 0 || row.states[n-1].name != is {
			row.states = append(row.states, span{at, f.end, is})
			if is == "leader" {
				f.changes = append(f.changes, change{at, s.Node, s.Term})
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f.nodes = append(f.nodes, *rows[name])
	}
}

// findOutages finds when nothing was acknowledged that changes anything, while
// the load lasted.
func (f *figures) findOutages(h *history.History) {
	loaded := f.end
	for i := range h.Events {
		if h.Events[i].Kind == history.LoadEnded {
			loaded = time.Duration(h.Events[i].At)
		}
	}
	if h.Run != nil && h.Run.Seconds > 0 { // what is left after it is drained, not waited for
		loaded = min(loaded, time.Duration(h.Run.Seconds)*time.Second)
	}
	var done []time.Duration
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Outcome == history.OK && op.Kind != history.Get && op.Kind != history.List && (op.Kind != history.Claim || op.TaskID != 0) {
			done = append(done, time.Duration(op.Return))
		}
	}
	slices.Sort(done)
	for n := 1; n < len(done); n++ {
		if done[n]-done[n-1] >= outageMin && done[n-1] < loaded {
			f.outages = append(f.outages, span{done[n-1], done[n], ""})
		}
	}
}
