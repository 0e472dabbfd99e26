package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/claimq/claimq/fsm"
)

const (
	// typeLabelsMax bounds the task types that have metrics of their own; the
	// first ones seen keep theirs, all others count as otherType.
	typeLabelsMax = 100
	otherType     = "other"
	// scrapeTimeout bounds how long a scrape waits for the state.
	scrapeTimeout = 5 * time.Second
	scrapesMax    = 4 // at once
)

// metrics are the server's own metrics.
type metrics struct {
	inFlight  prometheus.Gauge
	panics    prometheus.Counter
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	ok        [callCount]answered // code ok: the usual case
	handler   fasthttp.RequestHandler
}

// answered counts and times the answers of one call with one code.
type answered struct {
	count    prometheus.Counter
	duration prometheus.Observer
}

func (a answered) observe(r *request) {
	a.count.Inc()
	a.duration.Observe(time.Since(r.start).Seconds())
}

func newMetrics(s *Server) (*metrics, error) {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "claimq_http_request_duration_seconds", Help: "Time from the whole request to the answer, by call and code.",
		Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
	}, []string{"call", "code"})
	m := &metrics{
		durations: durations,
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "claimq_http_in_flight", Help: "Requests that are being answered.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "claimq_http_panics_total", Help: "Requests that ended in a panic, answered as internal. Each is a bug.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "claimq_http_requests_total", Help: "Answers by call and code: ok, a stable error code, forwarded or redirected.",
		}, []string{"call", "code"}),
	}
	for c := range callCount {
		m.ok[c] = m.answered(c, "ok")
	}
	connections := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_http_connections", Help: "Open connections to the HTTP port.",
	}, func() float64 { return float64(s.open.Load()) })
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_event_streams", Help: "Open streams of events.",
	}, func() float64 { return float64(s.feed.count()) })
	tasks := &taskCollector{server: s, labels: make(map[string]bool)}
	for _, c := range []prometheus.Collector{durations, m.inFlight, m.panics, m.requests, connections, streams, tasks} {
		if err := s.cfg.Registry.Register(c); err != nil {
			return nil, fmt.Errorf("register http metrics: %w", err)
		}
	}
	m.handler = fasthttpadaptor.NewFastHTTPHandler(outlive(promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax, Timeout: scrapeTimeout,
	})))
	return m, nil
}

// outlive keeps h from watching the request's context. fasthttp's has the
// channel that its server closes at shutdown, and reads it without a lock.
func outlive(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// observe counts and times an answered request.
func (m *metrics) observe(r *request) {
	switch {
	case r.label != "":
		m.answered(r.target.call, r.label).observe(r)
	case r.code != "":
		m.answered(r.target.call, string(r.code)).observe(r)
	default:
		m.ok[r.target.call].observe(r)
	}
}

func (m *metrics) answered(c call, code string) answered {
	return answered{m.requests.WithLabelValues(callNames[c], code), m.durations.WithLabelValues(callNames[c], code)}
}

// The metrics of the state, taken when they are scraped.
var (
	tasksDesc = prometheus.NewDesc("claimq_tasks", "Tasks that this node holds, by status.", []string{"status"}, nil)
	typesDesc = prometheus.NewDesc("claimq_tasks_by_type",
		"Tasks that this node holds, by type and status; types past the first 100 count as other.", []string{"task_type", "status"}, nil)
	bytesDesc  = prometheus.NewDesc("claimq_state_bytes", "Estimated memory of the state.", nil, nil)
	oldestDesc = prometheus.NewDesc("claimq_oldest_pending_age_seconds", "Age of the oldest pending task, 0 if there is none.", nil, nil)
)

// taskCollector collects the counts of the state from what this node has.
type taskCollector struct {
	server *Server
	mu     sync.Mutex
	labels map[string]bool // the types that have a label; guarded by mu
}

// Describe implements prometheus.Collector.
func (c *taskCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{tasksDesc, typesDesc, bytesDesc, oldestDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A node that cannot be read has no
// values.
func (c *taskCollector) Collect(ch chan<- prometheus.Metric) {
	var st fsm.Stats
	_, err := c.server.node.ReadStale(c.server.waits.at(time.Now()), 0, func(m *fsm.Machine, now fsm.Stamp) { st = m.Stats(now) })
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(bytesDesc, float64(st.Bytes))
	gauge(oldestDesc, float64(st.OldestPendingAgeMS)/1000)
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		gauge(tasksDesc, float64(st.Counts[s]), s.String())
	}
	for _, t := range c.bounded(st.Types) {
		for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
			gauge(typesDesc, float64(t.Counts[s]), t.Type, s.String())
		}
	}
}

// bounded returns the counts of the types with a label, and the sum of all
// others as otherType.
func (c *taskCollector) bounded(types []fsm.TypeStats) []fsm.TypeStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	others := fsm.TypeStats{Type: otherType}
	var out []fsm.TypeStats
	seen := false
	for _, t := range types {
		if t.Type != otherType && !c.labels[t.Type] && len(c.labels) < typeLabelsMax {
			c.labels[t.Type] = true
		}
		if c.labels[t.Type] {
			out = append(out, t)
			continue
		}
		seen = true
		for s := range t.Counts {
			others.Counts[s] += t.Counts[s]
		}
	}
	if seen {
		out = append(out, others)
	}
	return out
}
