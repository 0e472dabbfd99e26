package bench

import (
	"slices"
	"time"
)

// timings are one connection's latencies by kind of call, in microseconds.
type timings struct {
	counting bool
	us       [callKinds][]uint32
}

func (t *timings) add(k call, d time.Duration) {
	if t.counting {
		t.us[k] = append(t.us[k], uint32(min(d.Microseconds(), int64(^uint32(0)))))
	}
}

// CallLatency summarizes the latencies of one kind of call.
type CallLatency struct {
	Call  string  `json:"call"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// latencies merges the measurements of the connections.
func latencies(all []*timings) []CallLatency {
	var out []CallLatency
	for k := range callKinds {
		var us []uint32
		for _, t := range all {
			us = append(us, t.us[k]...)
		}
		if len(us) == 0 {
			continue
		}
		slices.Sort(us)
		at := func(p float64) float64 { return float64(us[min(int(float64(len(us))*p), len(us)-1)]) / 1000 }
		out = append(out, CallLatency{Call: callNames[k], Count: len(us), P50: at(0.50), P95: at(0.95), P99: at(0.99), Max: at(1)})
	}
	return out
}
