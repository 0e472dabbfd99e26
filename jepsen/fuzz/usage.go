package fuzz

import (
	"fmt"
	"strings"
)

// Usage holds a node's resources, by the names of its metrics.
type Usage map[string]float64

// used lists the metrics to compare, and how much they may grow until the node has settled.
// The state is emptied before both measurements, but what removed tasks leave for repeats,
// the trail and the buffers of connections stay.
var used = []struct {
	metric, what string
	unit, growth float64
}{
	{"go_goroutines", "goroutines", 1, 40},
	{"process_open_fds", "open files", 1, 20},
	{"go_memory_classes_heap_objects_bytes", "MB of heap", mb, 64},
	{resident, "MB of resident memory", mb, 256},
}

const (
	mb       = 1 << 20
	resident = "process_resident_memory_bytes"
	panics   = "claimq_http_panics_total"
)

// residentMB returns the memory of the process.
func (u Usage) residentMB() float64 { return u[resident] / mb }

// grown returns what a node uses too much of, "" if nothing. It may use most MB of memory
// in any case.
func (u Usage) grown(before Usage, most float64) string {
	for _, of := range used {
		allowed := before[of.metric]/of.unit + of.growth
		if of.unit == mb {
			allowed = max(allowed, most)
		}
		if now := u[of.metric] / of.unit; now > allowed {
			return fmt.Sprintf("%.0f %s, %.0f before", now, of.what, before[of.metric]/of.unit)
		}
	}
	return ""
}

// since formats a node's resources, with the earlier ones in brackets.
func (u Usage) since(before Usage) string {
	var said []string
	for _, of := range used {
		said = append(said, fmt.Sprintf("%.0f %s (%.0f)", u[of.metric]/of.unit, of.what, before[of.metric]/of.unit))
	}
	return strings.Join(said, ", ")
}
