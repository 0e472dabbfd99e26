package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
)

// Report is the result of a run.
type Report struct {
	Mode           Mode          `json:"mode"`
	Conns          int           `json:"conns"`
	Batch          int           `json:"batch"`
	Payload        int           `json:"payload"`
	Nodes          int           `json:"nodes"`
	Client         bool          `json:"client"`  // the load used package client
	Seconds        float64       `json:"seconds"` // of counting
	Tasks          int           `json:"tasks"`   // in that time
	TasksPerSecond float64       `json:"tasks_per_s"`
	Calls          []CallLatency `json:"calls"`
	LoadCPU        float64       `json:"load_cpu_s"`   // of this process in that time
	NodesSeen      int           `json:"nodes_seen"`   // nodes that reported the next three figures, at both ends
	ServerCPU      float64       `json:"server_cpu_s"` // in that time
	ServerRSS      float64       `json:"server_rss_bytes"`
	LogBytes       float64       `json:"log_bytes"` // of entries that were written in that time, counted once
	Done           int           `json:"done"`      // in the whole run
	Doubled        int           `json:"doubled"`
	Lost           int           `json:"lost"`
}

// Print writes the report as tables for people.
func (r Report) Print(w io.Writer) error {
	what, of := "connection", ""
	if r.Client {
		what, of = "goroutine", " of package client"
	}
	fmt.Fprintf(w, "%s: %s, %s%s, batch %d, %s of params\n", r.Mode, term.Count(r.Nodes, "node"), term.Count(r.Conns, what), of, r.Batch, bytesize.Text(int64(r.Payload)))
	fmt.Fprintf(w, "%.0f tasks/s: %s in %.1f s\n", r.TasksPerSecond, term.Count(r.Tasks, "task"), r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "call\tcount\tp50 ms\tp95 ms\tp99 ms\tmax ms\t")
	for _, l := range r.Calls {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t\n", l.Call, l.Count, l.P50, l.P95, l.P99, l.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	servers := "servers"
	if r.NodesSeen < r.Nodes {
		servers = fmt.Sprintf("servers (%d of %s; the others did not answer)", r.NodesSeen, term.Count(r.Nodes, "node"))
	}
	tasks := float64(max(1, r.Tasks))
	fmt.Fprintf(w, "%s: %.1f s of CPU (%.1f µs a task), %.0f MiB resident, %.0f bytes of log a task; the load: %.1f µs of CPU a task\n",
		servers, r.ServerCPU, r.ServerCPU*1e6/tasks, r.ServerRSS/(1<<20), r.LogBytes/tasks, r.LoadCPU*1e6/tasks)
	if r.Mode == Submit {
		return nil
	}
	_, err := fmt.Fprintf(w, "done %d, doubled %d, lost %d\n", r.Done, r.Doubled, r.Lost)
	return err
}

// timings are one connection's latencies by kind of call, in microseconds.
type timings struct {
	counting bool
	us       [callKinds][]uint32
}

func (t *timings) add(k call, d time.Duration) {
	if t.counting {
		t.us[k] = append(t.us[k], uint32(min(d.Microseconds(), int64(^uint32(0)))))
	}
}

// CallLatency summarizes the latencies of one kind of call.
type CallLatency struct {
	Call  string  `json:"call"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// latencies merges the measurements of the connections.
func latencies(all []*timings) []CallLatency {
	var out []CallLatency
	for k := range callKinds {
		var us []uint32
		for _, t := range all {
			us = append(us, t.us[k]...)
		}
		if len(us) == 0 {
			continue
		}
		slices.Sort(us)
		at := func(p float64) float64 { return float64(us[min(int(float64(len(us))*p), len(us)-1)]) / 1000 }
		out = append(out, CallLatency{Call: callNames[k], Count: len(us), P50: at(0.50), P95: at(0.95), P99: at(0.99), Max: at(1)})
	}
	return out
}

// ledger records what one connection did with the tasks of the run, to check at the end that each was done exactly
// once. It is for one goroutine.
type ledger struct {
	submitted []uint64 // ids, as answered
	completed []uint64 // ids, as acknowledged
}

// totals counts, over all connections, the tasks that were done, those done more than once, and those submitted but
// never done.
func totals(all []*ledger) (done, doubled, lost int) {
	times := make(map[uint64]int)
	for _, l := range all {
		for _, id := range l.submitted {
			times[id] += 0 // adds the id, done or not
		}
		for _, id := range l.completed {
			times[id]++
		}
	}
	for _, n := range times {
		switch {
		case n == 0:
			lost++
		case n > 1:
			doubled++
			done++
		default:
			done++
		}
	}
	return done, doubled, lost
}
