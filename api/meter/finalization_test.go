package meter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// gathered returns the lines of m's metrics.
func gathered(t *testing.T, m *Finalizations) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	for _, c := range m.collectors() {
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			labels := make([]string, 0, len(metric.GetLabel()))
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := metric.GetCounter().GetValue()
			if h := metric.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
			}
			fmt.Fprintf(&b, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), value)
		}
	}
	return b.String()
}

func TestFinalizations_counts(t *testing.T) {
	t.Parallel()
	m := newFinalizations()
	start := time.Now()
	for o := fsm.FinalizationClaimed; o <= fsm.FinalizationNotFound; o++ {
		for range o {
			m.Observe(start, command.ClaimFinalization{ProcessorID: "p"}, &fsm.ParentAnswer{Outcome: o})
		}
	}
	for _, done := range []bool{true, false, false} {
		m.Observe(start, command.ReleaseFinalization{ProcessorID: "p"}, &fsm.ParentAnswer{Done: done})
		m.Observe(start, command.ExtendFinalization{ProcessorID: "q"}, &fsm.ParentAnswer{Done: done})
	}
	m.Observe(start, command.Finalize{ProcessorID: "r"}, nil)
	got := gathered(t, m)
	for _, line := range []string{
		"finalization_claim_attempts_total{processor_id=p} 21",
		"finalization_claim_duration_seconds{processor_id=p} 21",
		"finalization_claim_success_total{processor_id=p} 3",
		"finalization_claim_contention_total{processor_id=p} 18",
		"finalization_claim_contention_by_reason_total{processor_id=p,reason=already_claimed} 3",
		"finalization_claim_contention_by_reason_total{processor_id=p,reason=already_complete} 4",
		"finalization_claim_contention_by_reason_total{processor_id=p,reason=not_ready} 5",
		"finalization_claim_contention_by_reason_total{processor_id=p,reason=other} 6",
		"finalization_claim_contention_by_reason_total{processor_id=p,reason=race_condition} 0",
		"finalization_claim_release_attempts_total{processor_id=p} 3",
		"finalization_claim_release_duration_seconds{processor_id=p} 3",
		"finalization_claim_release_success_total{processor_id=p} 1",
		"finalization_claim_release_not_owned_total{processor_id=p} 2",
		"finalization_claim_extend_attempts_total{processor_id=p} 0",
		"finalization_claim_extend_attempts_total{processor_id=q} 3",
		"finalization_claim_extend_duration_seconds{processor_id=q} 3",
		"finalization_claim_extend_success_total{processor_id=q} 1",
		"finalization_claim_extend_failed_total{processor_id=q} 2",
		// All exist before the first call.
		"finalization_claim_attempts_total{processor_id=other} 0",
		"finalization_claim_contention_by_reason_total{processor_id=other,reason=race_condition} 0",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(got, "processor_id=r}") {
		t.Error("a finalize is counted as a claim")
	}
}

// However many processors call, only a bounded number has its own metrics; one that is idle for an hour makes room.
func TestFinalizations_bounded(t *testing.T) {
	t.Parallel()
	m := newFinalizations()
	now := time.Now()
	name := func(i int) string { return fmt.Sprintf("p%03d", i) }
	for i := range processorLabelsMax {
		m.processor(name(i), now.Add(time.Duration(i)*time.Second)).claims.yes.Inc()
	}
	busy := m.processor(name(0), now.Add(30*time.Minute)) // now p001 is idle the longest
	for i := range 1000 {
		if m.processor(fmt.Sprintf("flood%d", i), now.Add(processorIdle)) != m.others {
			t.Fatal("another processor has metrics of its own while none is idle")
		}
	}
	late := now.Add(processorIdle + time.Second)
	if p := m.processor("late", late); p == m.others || p != m.processor("late", late) {
		t.Error("none made room after an hour")
	}
	if m.processor("later", late) != m.others {
		t.Error("two made room, though only one had been idle for an hour")
	}
	if m.processor(name(0), late) != busy {
		t.Error("a busy processor lost its metrics")
	}
	if m.processor(otherProcessor, late) != m.others {
		t.Error("a processor named other has metrics of its own")
	}
	got := gathered(t, m)
	if strings.Contains(got, "processor_id="+name(1)) || !strings.Contains(got, "finalization_claim_success_total{processor_id="+name(2)+"} 1\n") {
		t.Error("what makes room is not the one that was idle the longest")
	}
	if n := strings.Count(got, "finalization_claim_success_total{"); n != processorLabelsMax+1 {
		t.Errorf("%d processors have metrics, want %d and other", n, processorLabelsMax)
	}
}

// Counting does not allocate.
func TestFinalizations_allocates(t *testing.T) {
	m := newFinalizations()
	start := time.Now()
	var cmd command.Command = command.ClaimFinalization{ProcessorID: "p"}
	answer := &fsm.ParentAnswer{Outcome: fsm.FinalizationNotReady}
	m.Observe(start, cmd, answer)
	if n := testing.AllocsPerRun(100, func() { m.Observe(start, cmd, answer) }); n != 0 {
		t.Errorf("counting a claim allocates %v times", n)
	}
}
