package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
)

// AuthFailures counts refused callers by reason.
type AuthFailures struct {
	total  *prometheus.CounterVec
	counts [door.FailCount]prometheus.Counter
}

func newAuthFailures() AuthFailures {
	a := AuthFailures{total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "claimq_auth_failures_total",
		Help: "Requests refused for who made them: no key, a malformed or an unknown one, one that not all nodes know, one that has expired (401); a role, a task type, an address or an origin that is not allowed (403); a token of another issuer or audience, with another signature, not valid yet, valid for too long (401), or one that could not be checked (503).",
	}, []string{"reason"})}
	for f := range door.FailCount {
		a.counts[f] = a.total.WithLabelValues(door.FailureNames[f])
	}
	return a
}

// Refuse counts a refusal, and returns it.
func (a *AuthFailures) Refuse(why door.Failure, f *refuse.Refusal) *refuse.Refusal {
	a.counts[why].Inc()
	return f
}

var (
	rateLimitedDesc = prometheus.NewDesc("claimq_rate_limited_total", "Requests over a key's rate, by its name, answered 429: of the keys of now that were ever over it; oidc: is all tokens.", []string{"key"}, nil)
	keysDesc        = prometheus.NewDesc("claimq_api_keys", "API keys that this node knows. 0, and no tokens taken: it is open.", nil, nil)
)

var (
	issuerFetchesDesc = prometheus.NewDesc("claimq_oidc_fetches_total", "Fetches of the keys of the issuer of tokens, since it was configured, by how they ended: ok or failed.", []string{"result"}, nil)
	issuerKeysDesc    = prometheus.NewDesc("claimq_oidc_keys", "Keys of the issuer that tokens are checked with. 0: none is taken.", nil, nil)
	issuerAgeDesc     = prometheus.NewDesc("claimq_oidc_keys_age_seconds", "Since the keys of the issuer were fetched; they are of use for a day. Not there until they were.", nil, nil)
)

// collectTokens collects the metrics of the issuer of tokens.
func collectTokens(t *door.TokenRing, ch chan<- prometheus.Metric) {
	s := t.Issuer.Stats(time.Now())
	ch <- prometheus.MustNewConstMetric(issuerFetchesDesc, prometheus.CounterValue, float64(s.Fetched), "ok")
	ch <- prometheus.MustNewConstMetric(issuerFetchesDesc, prometheus.CounterValue, float64(s.Failed), "failed")
	ch <- prometheus.MustNewConstMetric(issuerKeysDesc, prometheus.GaugeValue, float64(s.Keys))
	if s.Age >= 0 {
		ch <- prometheus.MustNewConstMetric(issuerAgeDesc, prometheus.GaugeValue, s.Age.Seconds())
	}
	if n := t.Refused.Load(); n > 0 {
		ch <- prometheus.MustNewConstMetric(rateLimitedDesc, prometheus.CounterValue, float64(n), "oidc:")
	}
}

// keyCollector collects the metrics of the current keys.
type keyCollector struct{ of *Sources }

// Describe implements prometheus.Collector.
func (keyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- rateLimitedDesc
	ch <- keysDesc
	ch <- issuerFetchesDesc
	ch <- issuerKeysDesc
	ch <- issuerAgeDesc
}

// Collect implements prometheus.Collector.
func (c keyCollector) Collect(ch chan<- prometheus.Metric) {
	keys := c.of.Keys()
	if keys == nil {
		keys = &door.Keyring{}
	}
	ch <- prometheus.MustNewConstMetric(keysDesc, prometheus.GaugeValue, float64(len(keys.Sorted)))
	if keys.Tokens != nil {
		collectTokens(keys.Tokens, ch)
	}
	for _, k := range keys.Sorted {
		if n := k.Refused.Load(); n > 0 {
			ch <- prometheus.MustNewConstMetric(rateLimitedDesc, prometheus.CounterValue, float64(n), k.Name)
		}
	}
}
