package fuzz

import (
	"context"
	"fmt"
)

// Usage is what a node's process uses, by its own metrics.
type Usage struct {
	Goroutines int
	Files      int
	HeapMB     float64 // in use after the last garbage collection or since
	ResidentMB float64 // of the process
	Panics     int     // while answering requests
}

const mb = 1 << 20

// usageOf asks a node for its metrics.
func usageOf(ctx context.Context, node Node) (Usage, error) {
	values, err := node.Metrics(ctx)
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		Goroutines: int(values["go_goroutines"]), Files: int(values["process_open_fds"]),
		HeapMB: values["go_memstats_heap_alloc_bytes"] / mb, ResidentMB: values["process_resident_memory_bytes"] / mb,
		Panics: int(values["claimq_http_panics_total"]),
	}, nil
}

// How much more a node may use once it has settled. What the state holds is
// deleted before both looks; what removed tasks leave for repeats, the trail and
// the buffers of connections stay.
const (
	goroutinesGrowthMax = 40
	filesGrowthMax      = 20
	heapGrowthMax       = 64  // MB
	residentGrowthMax   = 256 // MB
)

// grown returns what a node uses too much of, "" if nothing.
func (u Usage) grown(before Usage) string {
	for _, of := range []struct {
		what               string
		now, before, grown float64
	}{
		{"goroutines", float64(u.Goroutines), float64(before.Goroutines), goroutinesGrowthMax},
		{"open files", float64(u.Files), float64(before.Files), filesGrowthMax},
		{"MB of heap", u.HeapMB, before.HeapMB, heapGrowthMax},
		{"MB of resident memory", u.ResidentMB, before.ResidentMB, residentGrowthMax},
	} {
		if of.now > of.before+of.grown {
			return fmt.Sprintf("%.0f %s, %.0f before", of.now, of.what, of.before)
		}
	}
	return ""
}
