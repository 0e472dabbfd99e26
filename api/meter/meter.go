package meter

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/zones"
	"github.com/claimq/claimq/nodes"
)

const (
	// scrapeTimeout limits how long a scrape waits for the state.
	scrapeTimeout = 5 * time.Second
	scrapesMax    = 4 // at once
)

// Metrics are a server's own metrics. They are safe for concurrent use.
type Metrics struct {
	InFlight prometheus.Gauge   // requests that are being answered
	Panics   prometheus.Counter // requests that panicked
	// StrangersEnded counts connections without a valid key that were closed to make room.
	StrangersEnded prometheus.Counter
	// LateDeletes counts deletes of messages of SQS that were received again since.
	LateDeletes   prometheus.Counter
	Finalizations *Finalizations
	AuthFailures  AuthFailures
	Handler       http.Handler // of /metrics

	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	overloads map[nodes.Bound]prometheus.Counter // never changed; "" is for all others
}

// Sources are the functions called on each scrape.
type Sources struct {
	NodeID, Version string

	Zones       func() *zones.Data // the time zones in use
	Connections func() int64       // open connections
	Strangers   func() int         // open connections without a valid key
	BodyBytes   func() int64       // of large requests
	AnswerBytes func() int64       // of large answers
	Streams     func() int         // of events
	// Keys returns the current keys, nil in open mode.
	Keys func() *door.Keyring
	// Read reads this node's state.
	Read func(fn func(m *fsm.Machine, now fsm.Stamp)) error
}

// New registers the metrics. It fails if registry already holds one of their names.
func New(registry *prometheus.Registry, of *Sources) (*Metrics, error) {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "claimq_http_request_duration_seconds", Help: "Time from the whole request to its success, by call, once there was one; of one with wait_ms, the wait too.",
		Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
	}, []string{"call"})
	m := &Metrics{
		durations: durations,
		InFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "claimq_http_in_flight", Help: "Requests that are being answered.",
		}),
		Panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "claimq_http_panics_total", Help: "Requests that ended in a panic, answered as internal. Each is a bug.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "claimq_http_requests_total", Help: "Answers by call and code: ok, a stable error code, forwarded or redirected.",
		}, []string{"call", "code"}),
		Finalizations: newFinalizations(),
		AuthFailures:  newAuthFailures(),
		StrangersEnded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "claimq_http_connections_ended_total", Help: "Connections without a valid key that were closed to make room for others.",
		}),
	}
	m.LateDeletes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "claimq_sqs_late_deletes_total", Help: "Deletes by clients of SQS that came after the visibility timeout, when the message had been received again: it was done twice.",
	})
	overloads := m.makeOverloads()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "claimq_build_info", Help: "Always 1: the node's name, its version and that of Go are in the labels.",
		ConstLabels: prometheus.Labels{"node_id": of.NodeID, "version": of.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	state := newStateCollector(of)
	collectors := append(m.Finalizations.collectors(), durations, m.InFlight, m.Panics, m.requests, overloads, m.StrangersEnded, m.LateDeletes, build, zonesCollector{of}, state, m.AuthFailures.total, keyCollector{of})
	collectors = append(collectors, of.gauges()...)
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register http metrics: %w", err)
		}
	}
	m.Handler = outlive(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax, Timeout: scrapeTimeout, EnableOpenMetrics: true,
	}))
	return m, nil
}

// gauges returns the gauges of the port and the streams.
func (of *Sources) gauges() []prometheus.Collector {
	return []prometheus.Collector{
		gauge("claimq_http_connections", "Open connections to the HTTP port.", of.Connections),
		gauge("claimq_http_body_bytes", "Bytes of the requests above 32 KiB that are being received and answered.", of.BodyBytes),
		gauge("claimq_http_answer_bytes", "Bytes of the answers above 32 KiB that are made and not written yet.", of.AnswerBytes),
		gauge("claimq_http_connections_without_key", "Open connections to the HTTP port that have shown no valid key; without keys, that have asked nothing.", of.Strangers),
		gauge("claimq_event_streams", "Open streams of events.", of.Streams),
	}
}

// zonesCollector collects the time zones in use, which may change at run time.
type zonesCollector struct{ of *Sources }

var zonesInfo = prometheus.NewDesc("claimq_time_zones_info", "Always 1: the release of the time zones that the node goes by, and the hash of all of them, are in the labels.", []string{"version", "sum"}, nil)

func (c zonesCollector) Describe(ch chan<- *prometheus.Desc) { ch <- zonesInfo }

func (c zonesCollector) Collect(ch chan<- prometheus.Metric) {
	data := c.of.Zones()
	ch <- prometheus.MustNewConstMetric(zonesInfo, prometheus.GaugeValue, 1, data.Version(), data.Sum())
}

func gauge[N int | int64](name, help string, of func() N) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of()) })
}

// makeOverloads creates a counter for each bound, so that all exist from the start.
func (m *Metrics) makeOverloads() *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "claimq_overloads_total", Help: "Answers overloaded that this node decided, by what is full.",
	}, []string{"bound"})
	m.overloads = map[nodes.Bound]prometheus.Counter{"": vec.WithLabelValues("other")}
	for _, b := range []nodes.Bound{
		nodes.BoundMemory, nodes.BoundDisk, nodes.BoundInFlight, nodes.BoundWaitingClaims, nodes.BoundWaitingReads, nodes.BoundConnections, nodes.BoundBodies, nodes.BoundAnswers, nodes.BoundReads,
		nodes.BoundKeyConnections, nodes.BoundKeyWaits, nodes.BoundKeyStreams, nodes.BoundIssuer,
	} {
		m.overloads[b] = vec.WithLabelValues(string(b))
	}
	return vec
}

// Overload counts an answer overloaded.
func (m *Metrics) Overload(reason fsm.Reason) {
	c := m.overloads[nodes.Bound(reason)]
	if c == nil {
		c = m.overloads[""]
	}
	c.Inc()
}

// outlive hides the request's context from h, because fasthttp's context has a channel that its server closes at
// shutdown and reads without a lock.
func outlive(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// Call counts the answers of one call, and times its successes.
type Call struct {
	name    string
	metrics *Metrics
	ok      prometheus.Counter // for code ok, the usual case
	// duration returns the timer of successes. Its samples are many, so there are none before the first success.
	duration func() prometheus.Observer
}

// Call returns the counter of the call of that name.
func (m *Metrics) Call(name string) Call {
	return Call{
		name: name, metrics: m, ok: m.requests.WithLabelValues(name, "ok"),
		duration: sync.OnceValue(func() prometheus.Observer { return m.durations.WithLabelValues(name) }),
	}
}

// Observe counts an answer to a request that began at start, and times a success. code is "" for a success.
func (c *Call) Observe(code string, start time.Time) {
	if code != "" {
		c.Count(code)
		return
	}
	c.ok.Inc()
	c.duration().Observe(time.Since(start).Seconds())
}

// Count counts an answer without timing it.
func (c *Call) Count(code string) { c.metrics.requests.WithLabelValues(c.name, code).Inc() }
