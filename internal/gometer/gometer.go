// Package gometer measures Go's runtime and the process for Prometheus.
package gometer

import (
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Register registers the metrics. Of the memory it leaves out all but the heap, because go_memstats_alloc_bytes and
// go_memstats_alloc_bytes_total would be one metric with two meanings in OpenMetrics.
func Register(r *prometheus.Registry) {
	r.MustRegister(
		collectors.NewGoCollector(
			collectors.WithGoCollectorMemStatsMetricsDisabled(),
			collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/memory/classes/heap/objects:bytes$`)}),
		),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
}
