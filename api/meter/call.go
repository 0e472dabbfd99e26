package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// answered counts and times answers with one code.
type answered struct {
	count    prometheus.Counter
	duration prometheus.Observer
}

func (a answered) observe(start time.Time) {
	a.count.Inc()
	a.duration.Observe(time.Since(start).Seconds())
}

// Call counts and times the answers of one call.
type Call struct {
	name    string
	metrics *Metrics
	ok      answered // for code ok, the usual case
}

// Call returns the counter of the call of that name.
func (m *Metrics) Call(name string) Call {
	c := Call{name: name, metrics: m}
	c.ok = c.answered("ok")
	return c
}

func (c *Call) answered(code string) answered {
	m := c.metrics
	return answered{m.requests.WithLabelValues(c.name, code), m.durations.WithLabelValues(c.name, code)}
}

// Observe counts and times an answer to a request that began at start. code is "" for a success.
func (c *Call) Observe(code string, start time.Time) {
	if code == "" {
		c.ok.observe(start)
		return
	}
	c.answered(code).observe(start)
}

// Count counts an answer without timing it.
func (c *Call) Count(code string) { c.answered(code).count.Inc() }
