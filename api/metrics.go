package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/claimq/claimq/fsm"
)

const (
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

	overloads    map[fsm.Bound]prometheus.Counter // never changed; "" is all else
	finalization *finalizationMetrics
	authFailures authFailures
	// strangersEnded counts those that were closed for others.
	strangersEnded prometheus.Counter
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
		Name: "claimq_http_request_duration_seconds", Help: "Time from the whole request to the answer, by call and code; of one with wait_ms, the wait too.",
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
		finalization: newFinalizationMetrics(),
		authFailures: newAuthFailures(),
		strangersEnded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "claimq_http_connections_ended_total", Help: "Connections without a valid key that were closed to make room for others.",
		}),
	}
	overloads := m.makeOverloads()
	for c := range callCount {
		m.ok[c] = m.answered(c, "ok")
	}
	connections := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_http_connections", Help: "Open connections to the HTTP port.",
	}, func() float64 { return float64(s.open.Load()) })
	bodies := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_http_body_bytes", Help: "Bytes of the requests above 32 KiB that are being received and answered.",
	}, func() float64 { return float64(s.bodies.Load()) })
	answers := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_http_answer_bytes", Help: "Bytes of the answers above 32 KiB that are made and not written yet.",
	}, func() float64 { return float64(s.answers.taken()) })
	unknown := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_http_connections_without_key", Help: "Open connections to the HTTP port that have shown no valid key; without keys, that have asked nothing.",
	}, func() float64 { return float64(s.strangers.count()) })
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claimq_event_streams", Help: "Open streams of events.",
	}, func() float64 { return float64(s.feed.Count()) })
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "claimq_build_info", Help: "Always 1: the node's name, its version and that of Go are in the labels.",
		ConstLabels: prometheus.Labels{"node_id": s.node.NodeID(), "version": s.cfg.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	state := newStateCollector(s)
	collectors := append(m.finalization.collectors(), durations, m.inFlight, m.panics, m.requests, overloads, bodies, answers, connections, unknown, m.strangersEnded, streams, build, state, m.authFailures.total, keyCollector{s})
	for _, c := range collectors {
		if err := s.cfg.Registry.Register(c); err != nil {
			return nil, fmt.Errorf("register http metrics: %w", err)
		}
	}
	m.handler = fasthttpadaptor.NewFastHTTPHandler(outlive(promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax, Timeout: scrapeTimeout,
	})))
	return m, nil
}

// makeOverloads makes the counters of what is full, all known from the start.
func (m *metrics) makeOverloads() *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "claimq_overloads_total", Help: "Answers overloaded that this node decided, by what is full.",
	}, []string{"bound"})
	m.overloads = map[fsm.Bound]prometheus.Counter{"": vec.WithLabelValues("other")}
	for _, b := range []fsm.Bound{
		fsm.BoundMemory, fsm.BoundDisk, fsm.BoundInFlight, fsm.BoundWaitingClaims, fsm.BoundWaitingReads, fsm.BoundConnections, fsm.BoundBodies, fsm.BoundAnswers,
		fsm.BoundKeyConnections, fsm.BoundKeyWaits, fsm.BoundKeyStreams, fsm.BoundIssuer,
	} {
		m.overloads[b] = vec.WithLabelValues(string(b))
	}
	return vec
}

// overload counts an answer overloaded.
func (m *metrics) overload(reason fsm.Reason) {
	c := m.overloads[fsm.Bound(reason)]
	if c == nil {
		c = m.overloads[""]
	}
	c.Inc()
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
	return answered{m.requests.WithLabelValues(c.String(), code), m.durations.WithLabelValues(c.String(), code)}
}
