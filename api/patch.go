package api

import (
	"math"

	"github.com/claimq/claimq/fsm"
)

// patchBody is the body of PATCH /api/tasks/{id}. null clears a field.
type patchBody struct{ cmd fsm.Patch }

func newPatch(id uint64) *patchBody { return &patchBody{cmd: fsm.Patch{ID: id}} }

func (c *patchBody) field(d *decoder, name []byte) (bad *refusal) {
	var n int64
	switch string(name) {
	case "priority":
		n, _, bad = d.integer("priority", math.MinInt32, math.MaxInt32)
		c.cmd.Priority, c.cmd.SetPriority = int32(n), true
	case "run_at":
		c.cmd.RunAt, _, bad = d.instant("run_at")
		c.cmd.SetRunAt = true
	case "labels":
		c.cmd.Labels, bad = d.labels()
		c.cmd.SetLabels = true
	default:
		bad = d.unknown(name)
	}
	return bad
}

func (c *patchBody) check(d *decoder) *refusal {
	if !c.cmd.SetPriority && !c.cmd.SetRunAt && !c.cmd.SetLabels {
		return &refusal{code: d.code, text: "The body changes nothing", advice: "Send at least one of priority, run_at and labels"}
	}
	return nil
}

func (c *patchBody) command() fsm.Command { return c.cmd }

func (c *patchBody) answer(b []byte, p *fsm.Proposed) []byte { return taskAnswer(b, p) }
