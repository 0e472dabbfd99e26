package check

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Describe says one op in a line: when it was, and all that the history has of it but the
// tasks of a list.
func Describe(op *history.Op) string {
	said := *op
	said.Listed = nil
	return fmt.Sprintf("%s..%s %s", clock(op.Call), clock(op.Return), asJSON(said))
}

// tell says an event of the trail in a line.
func tell(e *history.Told) string { return asJSON(e) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// clock is a time of the recorder in seconds.
func clock(ns int64) string { return fmt.Sprintf("%.6fs", time.Duration(ns).Seconds()) }
