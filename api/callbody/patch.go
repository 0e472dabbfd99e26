package callbody

import (
	"math"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Patch is the body of PATCH /api/tasks/{id}. null clears a field.
type Patch struct{ cmd command.Patch }

// NewPatch returns an empty body of that call about the task id, for Decode.
func NewPatch(id uint64) *Patch { return &Patch{cmd: command.Patch{ID: id}} }

func (c *Patch) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	var n int64
	switch string(name) {
	case "priority":
		n, _, bad = d.Integer("priority", math.MinInt32, math.MaxInt32)
		c.cmd.Priority, c.cmd.SetPriority = int32(n), true
	case "run_at":
		c.cmd.RunAt, _, bad = d.instant("run_at")
		c.cmd.SetRunAt = true
	case "labels":
		c.cmd.Labels, bad = d.labels()
		c.cmd.SetLabels = true
	default:
		bad = d.unknownAmong(name, "priority", "run_at", "labels")
	}
	return bad
}

func (c *Patch) check(d *Decoder) *refuse.Refusal {
	if !c.cmd.SetPriority && !c.cmd.SetRunAt && !c.cmd.SetLabels {
		return &refuse.Refusal{Code: d.code, Text: "The body changes nothing", Advice: "Send at least one of priority, run_at and labels"}
	}
	return nil
}

// Command is that of Body.
func (c *Patch) Command() command.Command { return c.cmd }

// Answer is that of Body.
func (c *Patch) Answer(b []byte, p *nodes.Proposed) []byte { return taskAnswer(b, p) }
