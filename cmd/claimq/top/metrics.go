package top

import (
	"strconv"
	"strings"
	"time"
)

// parseMetrics reads what is shown out of the text of /metrics; lines that it does
// not know, or cannot read, are passed over.
func parseMetrics(text string, at time.Time) Metrics {
	m := Metrics{At: at, OldestPendingMS: -1, StateBytes: -1, StateLimitBytes: -1, DiskFreeBytes: -1, DiskSizeBytes: -1, ProcessMemoryBytes: -1}
	for line := range strings.Lines(text) {
		name, labels, value, ok := sample(line)
		if ok {
			m.set(name, labels, value)
		}
	}
	return m
}

func (m *Metrics) set(name, labels string, value float64) {
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

// sample splits a line of Prometheus's text format. ok is false for comments and
// for what is not a finite number.
func sample(line string) (name, labels string, value float64, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", "", 0, false
	}
	rest := ""
	if open := strings.IndexByte(line, '{'); open >= 0 {
		end := strings.LastIndexByte(line, '}')
		if end < open {
			return "", "", 0, false
		}
		name, labels, rest = line[:open], line[open+1:end], line[end+1:]
	} else {
		name, rest, _ = strings.Cut(line, " ")
	}
	fields := strings.Fields(rest) // a timestamp may follow
	if len(fields) == 0 {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || value != value || value > countMax || value < -countMax {
		return "", "", 0, false
	}
	return name, labels, value, true
}

// countMax bounds the numbers that are taken from a node: what floats and integers
// both hold exactly.
const countMax = 1 << 53

// label returns the label's value, "" if there is none. The values that are asked
// for have no quotes in them.
func label(labels, name string) string {
	for len(labels) > 0 {
		key, rest, found := strings.Cut(labels, `="`)
		if !found {
			return ""
		}
		value, after, found := strings.Cut(rest, `"`)
		if !found {
			return ""
		}
		if strings.TrimLeft(key, ", ") == name {
			return value
		}
		labels = after
	}
	return ""
}
