package fuzz

import (
	"fmt"
	"strings"
)

// Usage is what a node's process uses, by its own metrics.
type Usage map[string]float64

// used is what is looked at, and how much more of it a node may use once it has settled:
// what the state holds is deleted before both looks; what removed tasks leave for repeats,
// the trail and the buffers of connections stay.
var used = []struct {
	metric, what string
	unit, growth float64
}{
	{"go_goroutines", "goroutines", 1, 40},
	{"process_open_fds", "open files", 1, 20},
	{"go_memstats_heap_alloc_bytes", "MB of heap", mb, 64},
	{resident, "MB of resident memory", mb, 256},
}

const (
	mb       = 1 << 20
	resident = "process_resident_memory_bytes"
	panics   = "claimq_http_panics_total"
)

// residentMB is the memory of the process.
func (u Usage) residentMB() float64 { return u[resident] / mb }

// grown returns what a node uses too much of, "" if nothing. Of memory it may use most MB
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

// since says what a node uses, and in brackets what it used before.
func (u Usage) since(before Usage) string {
	var said []string
	for _, of := range used {
		said = append(said, fmt.Sprintf("%.0f %s (%.0f)", u[of.metric]/of.unit, of.what, before[of.metric]/of.unit))
	}
	return strings.Join(said, ", ")
}
