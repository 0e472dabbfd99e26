package fuzz

import (
	"context"
	"fmt"
)

// Usage is what a node's process uses, by its own metrics.
type Usage struct {
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"`
	HeapMB     float64 `json:"heap_mb"`     // in use after the last garbage collection or since
	ResidentMB float64 `json:"resident_mb"` // of the process
	Panics     int     `json:"panics"`      // while answering requests
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
	switch {
	case u.Goroutines > before.Goroutines+goroutinesGrowthMax:
		return fmt.Sprintf("goroutines: %d, %d before", u.Goroutines, before.Goroutines)
	case u.Files > before.Files+filesGrowthMax:
		return fmt.Sprintf("open files: %d, %d before", u.Files, before.Files)
	case u.HeapMB > before.HeapMB+heapGrowthMax:
		return fmt.Sprintf("heap: %.0f MB, %.0f MB before", u.HeapMB, before.HeapMB)
	case u.ResidentMB > before.ResidentMB+residentGrowthMax:
		return fmt.Sprintf("resident memory: %.0f MB, %.0f MB before", u.ResidentMB, before.ResidentMB)
	}
	return ""
}
