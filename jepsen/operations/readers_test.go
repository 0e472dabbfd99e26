package operations

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/claimq/claimq/jepsen/check"
)

// A reader that misses an event of the restored cluster, or sees one again, is found; one that
// sees the rest is not.
func TestRun_judgeReaders(t *testing.T) {
	t.Parallel()
	trail := []told{{"1", "a"}, {"2", "b"}, {"8", "c"}, {"9", "d"}}
	for _, c := range []struct {
		events []told
		found  bool
	}{
		{trail[2:], false}, {trail[3:], true}, {trail[1:], true}, {nil, true},
	} {
		r := &run{cfg: Config{Out: io.Discard}, report: &Report{Part: check.Part{Name: "operations"}}}
		one := &reader{seen: counted([]told{{"1", "a"}, {"2", "b"}, {"3", "lost"}}), read: func(*run, context.Context, string) ([]told, error) { return c.events, nil }}
		if err := r.judgeReader(t.Context(), one, trail); err != nil || (r.report.ViolationCount > 0) != c.found {
			t.Errorf("%v: %v, %s", c.events, err, fmt.Sprint(r.report.Violations))
		}
	}
}
