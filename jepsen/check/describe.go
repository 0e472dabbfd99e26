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
	b, err := json.Marshal(said)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s..%s %s", clock(op.Call), clock(op.Return), b)
}

// clock is a time of the recorder in seconds.
func clock(ns int64) string { return fmt.Sprintf("%.6fs", time.Duration(ns).Seconds()) }
