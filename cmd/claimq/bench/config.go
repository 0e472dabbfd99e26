package bench

import (
	"fmt"
	"time"
)

// Mode says what the connections do.
type Mode string

// The modes.
const (
	// Lifecycle makes each connection submit, claim and complete in turn.
	Lifecycle Mode = "lifecycle"
	// Submit only submits.
	Submit Mode = "submit"
	// Drain first submits everything, unmeasured, and then claims and completes.
	Drain Mode = "drain"
	// Chain makes each connection submit a task and complete the one that it holds with a claim of the next: two
	// calls per task instead of three.
	Chain Mode = "chain"
	// Latency is Lifecycle on one connection, as a single worker experiences it.
	Latency Mode = "latency"
)

// Bounds of Config.
const (
	ConnsMax   = 10_000
	TasksMax   = 100_000_000
	PayloadMax = 1 << 20
	BatchMax   = 1_000
)

// Config says what to measure.
type Config struct {
	Mode    Mode
	Conns   int // connections, each with one call under way
	Tasks   int // in total
	Payload int // bytes of params per task, at least 2
	Batch   int // tasks per submit, claim and batch of completes; 1 uses the calls for one task
	// Client uses package client instead of the load's own connections: Conns goroutines submit, and one Worker has
	// Conns slots. It requires the mode submit, drain or lifecycle, and Batch 1.
	Client bool
	// RequestIDs gives each claim a claim_request_id, as the Go client does.
	RequestIDs bool
	// WarmUp is the time before counting begins.
	WarmUp time.Duration
	// Endpoints are the nodes' URLs. The load goes to the leader.
	Endpoints []string
}

// Validate returns an error for the first setting that is out of range.
func (c *Config) Validate() error {
	switch c.Mode {
	case Lifecycle, Submit, Drain, Chain, Latency:
	default:
		return fmt.Errorf("--mode is %q: it must be submit, drain, lifecycle, chain or latency", c.Mode)
	}
	if c.Mode == Chain && c.Batch != 1 {
		return fmt.Errorf("--batch is %d: with --mode chain it must be 1", c.Batch)
	}
	if c.Client && (c.Mode == Chain || c.Mode == Latency || c.Batch != 1) {
		return fmt.Errorf("--client goes with --mode submit, drain or lifecycle and --batch 1: --mode is %q, --batch %d", c.Mode, c.Batch)
	}
	for _, f := range []struct {
		name           string
		value, lo, top int
	}{
		{"conns", c.Conns, 1, ConnsMax},
		{"tasks", c.Tasks, 1, TasksMax},
		{"payload", c.Payload, 2, PayloadMax},
		{"batch", c.Batch, 1, BatchMax},
	} {
		if f.value < f.lo || f.value > f.top {
			return fmt.Errorf("--%s is %d: it must be %d to %d", f.name, f.value, f.lo, f.top)
		}
	}
	if c.Batch*c.Payload > 4<<20 {
		return fmt.Errorf("--batch times --payload is %d bytes: it must be at most 4 MiB", c.Batch*c.Payload)
	}
	if len(c.Endpoints) == 0 {
		return fmt.Errorf("no endpoint to drive")
	}
	return nil
}
