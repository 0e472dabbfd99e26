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
	// say says what there is: the name alone of what is true.
	say := func(name string, value any) {
		switch value {
		case "", uint64(0), int64(0), time.Duration(0), false:
		case true:
			b.WriteString(" " + name)
		default:
			fmt.Fprintf(&b, " %s %v", name, value)
		}
	}
	fmt.Fprintf(&b, "%s..%s p%d %s", clock(op.Call), clock(op.Return), op.Process, op.Kind)
	say("task", op.TaskID)
	say("token", op.Token)
	say("by", op.Worker)
	say("request", op.RequestID)
	say("key", op.Key)
	say("node", op.Node)
	say("result", op.Result)
	say("type", op.TaskType)
	say("group", op.Group)
	say("goal", op.Goal)
	say("lease", time.Duration(op.LeaseMS)*time.Millisecond)
	say("wait", time.Duration(op.WaitMS)*time.Millisecond)
	say("changed", op.Count)
	say("stale", op.Stale)
	b.WriteString(strings.TrimRight(fmt.Sprintf(" -> %s %s", op.Outcome, op.Code), " "))
	say("created", op.Created)
	say("repeated", op.Repeated)
	say("done", op.Done)
	say("held by", op.Holder)
	say("state", op.State)
	say("action", op.Action)
	if s := op.Seen; s != nil {
		fmt.Fprintf(&b, ", saw %s token %d attempts %d", s.Status, s.Token, s.Attempts)
	}
	return b.String()
}

// clock is a time of the recorder in seconds.
func clock(ns int64) string { return fmt.Sprintf("%.6fs", time.Duration(ns).Seconds()) }
