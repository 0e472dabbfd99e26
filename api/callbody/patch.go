package callbody

import (
	"math"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm/command"
)

// Patch is the body of PATCH /api/tasks/{id}. null clears a field.
type Patch struct{ about[command.Patch] }

func (c *Patch) setID(id uint64) { c.Cmd.ID = id }

func (c *Patch) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	var n int64
	switch string(name) {
	case "priority":
		n, _, bad = d.Integer("priority", math.MinInt32, math.MaxInt32)
		c.Cmd.Priority, c.Cmd.SetPriority = int32(n), true
	case "run_at":
		c.Cmd.RunAt, _, bad = d.instant("run_at")
		c.Cmd.SetRunAt = true
	case "labels":
		c.Cmd.Labels, bad = d.labels()
		c.Cmd.SetLabels = true
	default:
		bad = d.unknownAmong(name, "priority", "run_at", "labels")
	}
	return bad
}

func (c *Patch) check(d *Decoder) *refuse.Refusal {
	return d.changes(c.Cmd.SetPriority || c.Cmd.SetRunAt || c.Cmd.SetLabels, "priority, run_at and labels")
}
