package top

import (
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// parseMetrics reads the shown values from the text of /metrics. If text is invalid, they are empty.
func parseMetrics(text string, at time.Time) Metrics {
	m := Metrics{At: at, OldestPendingMS: -1, StateBytes: -1, StateLimitBytes: -1, DiskFreeBytes: -1, DiskSizeBytes: -1, ProcessMemoryBytes: -1}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return m
	}
	for name, family := range families {
		for _, s := range family.GetMetric() {
			value := s.GetCounter().GetValue() + s.GetGauge().GetValue() + s.GetUntyped().GetValue()
			if math.Abs(value) <= countMax {
				m.set(name, s.GetLabel(), value)
			}
		}
	}
	return m
}

func (m *Metrics) set(name string, labels []*dto.LabelPair, value float64) {
	switch name {
	case "claimq_build_info":
		m.NodeID = label(labels, "node_id")
	case "claimq_raft_leader":
		m.Leads = value == 1
	case "process_start_time_seconds":
		m.Started = value
	case "claimq_tasks_submitted_total":
		m.Submitted = value
	case "claimq_claims_total":
		m.Claimed = value
	case "claimq_tasks_completed_total":
		m.Completed = value
	case "claimq_tasks_failed_total":
		m.Failed = value
	case "claimq_expiries_total":
		m.Expired = value
	case "claimq_tasks":
		if m.Tasks == nil {
			m.Tasks = make(map[string]int64, 8)
		}
		m.Tasks[label(labels, "status")] = int64(value)
	case "claimq_oldest_pending_age_seconds":
		m.OldestPendingMS = int64(value * 1000)
	case "claimq_state_bytes":
		m.StateBytes = int64(value)
	case "claimq_state_limit_bytes":
		m.StateLimitBytes = int64(value)
	case "claimq_disk_free_bytes":
		m.DiskFreeBytes = int64(value)
	case "claimq_disk_size_bytes":
		m.DiskSizeBytes = int64(value)
	case "process_resident_memory_bytes":
		m.ProcessMemoryBytes = int64(value)
	}
}

// countMax bounds the numbers from a node: floats and integers both hold values up to it exactly.
const countMax = 1 << 53

// label returns the label's value, or "" if there is none.
func label(labels []*dto.LabelPair, name string) string {
	for _, l := range labels {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
