package meter

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// processorLabelsMax bounds the processors with their own metrics; others count as otherProcessor.
	processorLabelsMax = 100
	otherProcessor     = "other"
	// processorIdle is the time after which an idle processor loses its metrics if another needs the room, so that
	// ids used only once do not block others for ever.
	processorIdle = time.Hour
)

// contentionReasons are all reasons why a claim of a finalization is not granted. race_condition stays 0, because
// commands are applied one after the other.
var contentionReasons = [...]string{"already_claimed", "already_complete", "not_ready", "race_condition", "other"}

// Finalizations counts and times the calls about finalizations, by processor. Only calls that the log has answered
// count, and only on the leader that proposed them, so that attempts are successes plus failures, also summed over
// the cluster. Calls that were malformed, found no leader or got no answer in time appear among the requests.
type Finalizations struct {
	claims, releases, extends *finalizationCall
	contention                *prometheus.CounterVec // by reason

	mu         sync.Mutex
	processors map[string]*processorMetrics // guarded by mu
	// fullUntil is the time at which a processor may next have been idle for long enough, if there is no room;
	// guarded by mu.
	fullUntil time.Time
	others    *processorMetrics
}

// finalizationCall holds the metrics of one of the three calls: yes counts successes, no the others.
type finalizationCall struct {
	attempts, yes, no *prometheus.CounterVec
	durations         *prometheus.HistogramVec
}

// processorMetrics are the metrics of one processor.
type processorMetrics struct {
	claims, releases, extends outcomes
	contention                map[string]prometheus.Counter // by reason; never changed

	lastAt time.Time // time of its last call; guarded by the mutex of Finalizations
}

// outcomes are the metrics of one call by one processor.
type outcomes struct {
	attempts prometheus.Counter
	duration prometheus.Observer
	yes, no  prometheus.Counter
}

func newFinalizations() *Finalizations {
	m := &Finalizations{
		claims: newFinalizationCall("finalization_claim", "claims of a finalization",
			"success", "Claims of a finalization that were got, or extended by their holder.",
			"contention", "Claims of a finalization that were not got, for whatever reason."),
		releases: newFinalizationCall("finalization_claim_release", "releases of a finalization's claim",
			"success", "Claims of a finalization that were released, or had ended with their holder's finalize.",
			"not_owned", "Releases of a finalization's claim by one that did not hold it."),
		extends: newFinalizationCall("finalization_claim_extend", "extends of a finalization's claim",
			"success", "Claims of a finalization that were extended.",
			"failed", "Extends of a finalization's claim by one that did not hold it, or no longer."),
		contention: newProcessorCounter("finalization_claim_contention_by_reason_total",
			"Claims of a finalization that were not got, by reason: already_claimed, already_complete, not_ready, race_condition (never), other.", "reason"),
		processors: make(map[string]*processorMetrics),
	}
	m.others = m.newProcessor(otherProcessor)
	return m
}

// newFinalizationCall returns the metrics of a call, with the names and help of its two outcomes.
func newFinalizationCall(name, what, yes, yesHelp, no, noHelp string) *finalizationCall {
	return &finalizationCall{
		attempts: newProcessorCounter(name+"_attempts_total", "Answered "+what+"."),
		yes:      newProcessorCounter(name+"_"+yes+"_total", yesHelp),
		no:       newProcessorCounter(name+"_"+no+"_total", noHelp),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name + "_duration_seconds", Help: "Time from the whole request to the answer, of " + what + ".",
			Buckets: []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}, []string{"processor_id"}),
	}
}

func newProcessorCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"processor_id"}, labels...))
}

// collectors returns the collectors to register.
func (m *Finalizations) collectors() []prometheus.Collector {
	cs := []prometheus.Collector{m.contention}
	for _, c := range m.calls() {
		cs = append(cs, c.attempts, c.yes, c.no, c.durations)
	}
	return cs
}

func (m *Finalizations) calls() []*finalizationCall {
	return []*finalizationCall{m.claims, m.releases, m.extends}
}

// Observe counts and times the log's answer to a request about a finalization that began at start. It ignores other
// commands.
func (m *Finalizations) Observe(start time.Time, cmd command.Command, answer *fsm.ParentAnswer) {
	switch c := cmd.(type) {
	case command.ClaimFinalization:
		p, reason := m.processor(c.ProcessorID, time.Now()), codec.FinalizationReason(answer.Outcome)
		p.claims.observe(start, reason == "")
		if reason != "" {
			p.contention[reason].Inc()
		}
	case command.ReleaseFinalization:
		m.processor(c.ProcessorID, time.Now()).releases.observe(start, answer.Done)
	case command.ExtendFinalization:
		m.processor(c.ProcessorID, time.Now()).extends.observe(start, answer.Done)
	}
}

func (o *outcomes) observe(start time.Time, yes bool) {
	o.attempts.Inc()
	o.duration.Observe(time.Since(start).Seconds())
	if yes {
		o.yes.Inc()
	} else {
		o.no.Inc()
	}
}

// processor returns the metrics for the processor's calls.
func (m *Finalizations) processor(id string, now time.Time) *processorMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.processors[id]
	switch {
	case p != nil:
	case id == otherProcessor || !m.makeRoomLocked(now):
		return m.others
	default:
		p = m.newProcessor(id)
		m.processors[id] = p
	}
	p.lastAt = now
	return p
}

// makeRoomLocked reports whether another processor may have its own metrics. If there is no room, it removes those of
// an idle one.
func (m *Finalizations) makeRoomLocked(now time.Time) bool {
	if len(m.processors) < processorLabelsMax {
		return true
	}
	if now.Before(m.fullUntil) {
		return false
	}
	longest, oldestAt := "", now
	for id, p := range m.processors {
		if p.lastAt.Before(oldestAt) {
			longest, oldestAt = id, p.lastAt
		}
	}
	if m.fullUntil = oldestAt.Add(processorIdle); now.Before(m.fullUntil) {
		return false
	}
	delete(m.processors, longest)
	of := prometheus.Labels{"processor_id": longest}
	m.contention.DeletePartialMatch(of)
	for _, c := range m.calls() {
		for _, v := range []*prometheus.CounterVec{c.attempts, c.yes, c.no} {
			v.DeletePartialMatch(of)
		}
		c.durations.DeletePartialMatch(of)
	}
	return true
}

// newProcessor creates all metrics of one processor, at 0.
func (m *Finalizations) newProcessor(id string) *processorMetrics {
	p := &processorMetrics{claims: m.claims.of(id), releases: m.releases.of(id), extends: m.extends.of(id), contention: make(map[string]prometheus.Counter)}
	for _, reason := range contentionReasons {
		p.contention[reason] = m.contention.WithLabelValues(id, reason)
	}
	return p
}

func (c *finalizationCall) of(processor string) outcomes {
	return outcomes{
		c.attempts.WithLabelValues(processor), c.durations.WithLabelValues(processor),
		c.yes.WithLabelValues(processor), c.no.WithLabelValues(processor),
	}
}
