// Package workmeter serves the metrics of a running `claimq work` to Prometheus. docs/metrics.md
// lists them.
package workmeter

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/serve"
	"github.com/claimq/claimq/internal/gometer"
)

const (
	// scrapesMax bounds the scrapes that are answered at the same time. Further ones are refused.
	scrapesMax = 4
	// connectionsMax bounds the open connections. Further ones are closed.
	connectionsMax = 64
	// exchangeTimeout bounds the time to read a request and the time to write its answer.
	exchangeTimeout = 5 * time.Second
	// idleTimeout limits how long a connection may wait for its next request. It is longer than the
	// usual pause between scrapes.
	idleTimeout = 2 * time.Minute
	// headerBytesMax bounds a request's headers.
	headerBytesMax = 8 << 10
)

// Meter measures a worker. Set its fields before Listen.
type Meter struct {
	Version  string // of the binary
	WorkerID string
	Client   *client.Client
	// Dropped returns the number of dropped log lines.
	Dropped func() uint64
	// Programs counts the programs of --serve; nil without it.
	Programs *serve.Counts

	worker atomic.Pointer[client.Worker]
}

// Work sets the worker to measure, once it exists.
func (m *Meter) Work(w *client.Worker) { m.worker.Store(w) }

// Listen serves GET /metrics at addr until end is called. It returns the address it listens at.
func (m *Meter) Listen(addr string) (at string, end func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("listen on --metrics-addr %s: %w", addr, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	gometer.Register(registry)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax, Timeout: exchangeTimeout, EnableOpenMetrics: true,
	}))
	server := &http.Server{
		Handler: mux, ReadTimeout: exchangeTimeout, WriteTimeout: 2 * exchangeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // errors of unknown callers
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(&bounded{Listener: l}) }) // until Close, which is called after everything else has ended
	return l.Addr().String(), func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

// bounded is a listener that closes what connects beyond connectionsMax.
type bounded struct {
	net.Listener
	open atomic.Int64
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= connectionsMax {
			return &counted{Conn: conn, of: b}, nil
		}
		b.open.Add(-1)
		_ = conn.Close()
	}
}

// counted is an accepted connection, which counts as open until it is closed.
type counted struct {
	net.Conn
	of   *bounded
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

// The metrics, besides those of Go's runtime and of the process.
var (
	infoDesc     = desc("claimq_worker_info", "Always 1: the worker's id, its version and that of Go are in the labels.", "worker_id", "version", "go_version")
	slotsDesc    = desc("claimq_worker_slots", "Tasks that the worker takes at a time.")
	runningDesc  = desc("claimq_worker_running", "Tasks that are being worked on.")
	claimsDesc   = desc("claimq_worker_claims_total", "Claims that the worker got.")
	tasksDesc    = desc("claimq_worker_tasks_total", "Claims by how they ended: completed; failed; released, given back uncounted; lost, over before they could be settled, or settled by a call whose outcome is not known.", "outcome")
	requestsDesc = desc("claimq_worker_requests_total", "Requests to the nodes.")
	repeatsDesc  = desc("claimq_worker_requests_repeated_total", "Those of them that were sent again: a node that does not answer, a change of leader, a limit.")
	unknownDesc  = desc("claimq_worker_calls_unknown_total", "Calls, settles among them, that ended without an answer that tells whether they are done.")
	droppedDesc  = desc("claimq_log_lines_dropped_total", "Lines of the log that were dropped, because it was not read or is broken.")

	processesDesc = desc("claimq_worker_processes", "Of --serve: programs that are connected.")
	startedDesc   = desc("claimq_worker_processes_started_total", "Of --serve: processes started, or programs that connected.")
	diedDesc      = desc("claimq_worker_processes_died_total", "Of --serve: programs that ended unasked, or were ended: with tasks in hand, a failure, or a fault.")
	refusedDesc   = desc("claimq_worker_lines_refused_total", "Of --serve: lines that broke the protocol; each ended its program.")
	unaskedDesc   = desc("claimq_worker_answers_dropped_total", "Of --serve: answers about tasks that the program did not have.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *Meter) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *Meter) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(infoDesc, 1, m.WorkerID, m.Version, runtime.Version())
	var w client.WorkerStats
	if worker := m.worker.Load(); worker != nil {
		w = worker.Stats()
	}
	gauge(slotsDesc, w.Slots)
	gauge(runningDesc, w.Running)
	counter(claimsDesc, w.Claimed)
	counter(tasksDesc, w.Completed, "completed")
	counter(tasksDesc, w.Failed, "failed")
	counter(tasksDesc, w.Released, "released")
	counter(tasksDesc, w.Lost, "lost")
	c := m.Client.Stats()
	counter(requestsDesc, c.Requests)
	counter(repeatsDesc, c.Repeats)
	counter(unknownDesc, c.Unknown)
	counter(droppedDesc, int64(m.Dropped()))
	if p := m.Programs; p != nil {
		gauge(processesDesc, p.Connected.Load())
		counter(startedDesc, p.Started.Load())
		counter(diedDesc, p.Died.Load())
		counter(refusedDesc, p.LinesRefused.Load())
		counter(unaskedDesc, p.AnswersDropped.Load())
	}
}
