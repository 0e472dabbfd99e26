package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the report as tables for people.
func (r Report) Print(w io.Writer) error {
	what := "connections"
	if r.Client {
		what = "goroutines of package client"
	}
	fmt.Fprintf(w, "%s: %d nodes, %d %s, batch %d, %d bytes of params\n", r.Mode, r.Nodes, r.Conns, what, r.Batch, r.Payload)
	fmt.Fprintf(w, "%.0f tasks/s: %d tasks in %.1f s\n", r.TasksPerSecond, r.Tasks, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "call\tcount\tp50 ms\tp95 ms\tp99 ms\tmax ms\t")
	for _, l := range r.Calls {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t\n", l.Call, l.Count, l.P50, l.P95, l.P99, l.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "servers: %.1f s of CPU (%.1f µs a task), %.0f MiB resident; the load: %.1f µs of CPU a task\n",
		r.ServerCPU, r.ServerCPU*1e6/float64(max(1, r.Tasks)), r.ServerRSS/(1<<20), r.LoadCPU*1e6/float64(max(1, r.Tasks)))
	if r.Mode == Submit {
		return nil
	}
	_, err := fmt.Fprintf(w, "done %d, doubled %d, lost %d\n", r.Done, r.Doubled, r.Lost)
	return err
}
