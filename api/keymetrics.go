package api

import (
	"github.com/prometheus/client_golang/prometheus"
)

// failure is why a request was refused for who made it.
type failure uint8

const (
	failMissing failure = iota
	failMalformed
	failUnknown
	failDiffer
	failExpired
	failRole
	failType
	failAddress
	failOrigin
	failCount
)

var failureNames = [failCount]string{"missing", "malformed", "unknown", "differ", "expired", "role", "task_type", "address", "origin"}

// authFailures counts refusals by their reason.
type authFailures struct {
	total  *prometheus.CounterVec
	counts [failCount]prometheus.Counter
}

func newAuthFailures() authFailures {
	a := authFailures{total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "claimq_auth_failures_total",
		Help: "Requests refused for who made them: no key, a malformed or an unknown one, one that not all nodes know, one that has expired (401); a role, a task type, an address or an origin that is not allowed (403).",
	}, []string{"reason"})}
	for f := range failCount {
		a.counts[f] = a.total.WithLabelValues(failureNames[f])
	}
	return a
}

// refuse counts a refusal, and returns it.
func (a *authFailures) refuse(why failure, f *refusal) *refusal {
	a.counts[why].Inc()
	return f
}

var (
	rateLimitedDesc = prometheus.NewDesc("claimq_rate_limited_total", "Requests over a key's rate, by its name, answered 429: of the keys of now that were ever over it.", []string{"key"}, nil)
	keysDesc        = prometheus.NewDesc("claimq_api_keys", "API keys that this node knows. 0: it is open.", nil, nil)
)

// keyCollector tells of the keys that there are at the moment.
type keyCollector struct{ server *Server }

// Describe is prometheus.Collector's.
func (keyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- rateLimitedDesc
	ch <- keysDesc
}

// Collect is prometheus.Collector's.
func (c keyCollector) Collect(ch chan<- prometheus.Metric) {
	keys := c.server.keys.Load()
	if keys == nil {
		keys = &keyTable{}
	}
	ch <- prometheus.MustNewConstMetric(keysDesc, prometheus.GaugeValue, float64(len(keys.sorted)))
	for _, k := range keys.sorted {
		if n := k.refused.Load(); n > 0 {
			ch <- prometheus.MustNewConstMetric(rateLimitedDesc, prometheus.CounterValue, float64(n), k.name)
		}
	}
}
