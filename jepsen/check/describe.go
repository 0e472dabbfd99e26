package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Describe says one op in a line: when, who, what, and what came of it.
func Describe(op *history.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s..%s p%d %s", clock(op.Call), clock(op.Return), op.Process, op.Kind)
	if op.TaskID != 0 {
		fmt.Fprintf(&b, " task %d", op.TaskID)
	}
	if op.Token != 0 {
		fmt.Fprintf(&b, " token %d", op.Token)
	}
	for _, part := range []struct{ name, value string }{
		{"by", op.Worker},
		{"request", op.RequestID},
		{"key", op.Key},
		{"node", op.Node},
		{"result", op.Result},
		{"type", op.TaskType},
		{"group", op.Group},
		{"goal", op.Goal},
	} {
		if part.value != "" {
			fmt.Fprintf(&b, " %s %s", part.name, part.value)
		}
	}
	if op.LeaseMS != 0 {
		fmt.Fprintf(&b, " lease %d ms", op.LeaseMS)
	}
	if op.WaitMS != 0 {
		fmt.Fprintf(&b, " wait %d ms", op.WaitMS)
	}
	if op.Kind == history.Act && op.Outcome == history.OK {
		fmt.Fprintf(&b, " changed %d", op.Count)
	}
	if op.Stale {
		b.WriteString(" stale")
	}
	fmt.Fprintf(&b, " -> %s", op.Outcome)
	if op.Code != "" {
		fmt.Fprintf(&b, " %s", op.Code)
	}
	if op.Created {
		b.WriteString(" created")
	}
	if op.Repeated {
		b.WriteString(" repeated")
	}
	if op.Done {
		b.WriteString(" done")
	}
	for _, part := range []struct{ name, value string }{{"held by", op.Holder}, {"state", op.State}, {"action", op.Action}} {
		if part.value != "" {
			fmt.Fprintf(&b, " %s %s", part.name, part.value)
		}
	}
	if s := op.Seen; s != nil {
		fmt.Fprintf(&b, ", saw %s token %d attempts %d", s.Status, s.Token, s.Attempts)
	}
	return b.String()
}

// clock is a time of the recorder in seconds.
func clock(ns int64) string { return fmt.Sprintf("%.6fs", time.Duration(ns).Seconds()) }
