package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
)

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
