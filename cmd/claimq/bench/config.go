package bench

import (
	"fmt"
	"time"
)

// Mode is what the connections do.
type Mode string

// The modes.
const (
	// Lifecycle: each connection submits, claims and completes in turn.
	Lifecycle Mode = "lifecycle"
	// Submit: submits only.
	Submit Mode = "submit"
	// Drain: submits all first, unmeasured; then claims and completes.
	Drain Mode = "drain"
	// Chain: each connection submits a task and completes the one that it holds,
	// which claims the next: two calls a task in place of three.
	Chain Mode = "chain"
	// Latency is Lifecycle on one connection: what one worker feels.
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
	Tasks   int // in all
	Payload int // bytes of params a task, at least 2
	Batch   int // tasks a submit, a claim and a batch of completes; 1 = the calls for one
	// Client has package client do the work in place of connections of the load's own:
	// Conns goroutines submit, and one Worker has Conns slots. It goes with the modes
	// submit, drain and lifecycle, and Batch 1.
	Client bool
	// RequestIDs gives each claim a claim_request_id, as the Go client does.
	RequestIDs bool
	// WarmUp is how long the connections work before anything is counted.
	WarmUp time.Duration
	// Endpoints are the nodes' URLs. The load goes to the one that leads.
	Endpoints []string
}

// Validate returns the first setting that is out of its range, in words.
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
