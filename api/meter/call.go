package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// answered counts and times answers of one kind.
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
	ok      answered // code ok: the usual case
}

// Call returns what counts the call of that name.
func (m *Metrics) Call(name string) Call {
	c := Call{name: name, metrics: m}
	c.ok = c.answered("ok")
	return c
}

func (c *Call) answered(code string) answered {
	m := c.metrics
	return answered{m.requests.WithLabelValues(c.name, code), m.durations.WithLabelValues(c.name, code)}
}

// Observe counts and times an answer, to a request that is there since start. code is ""
// for one that is as asked for.
func (c *Call) Observe(code string, start time.Time) {
	if code == "" {
		c.ok.observe(start)
		return
	}
	c.answered(code).observe(start)
}

// Count counts an answer that took no time.
func (c *Call) Count(code string) { c.answered(code).count.Inc() }
